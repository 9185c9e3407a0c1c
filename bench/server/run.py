"""`bench server`: a real server process under load, and a bare echo server beside it.

The load generator is the process of the command. It sends messages that were written before and looks
into as few of what arrives as it can, so that the server is what is measured. Both servers run on uvloop
in processes of their own. They are measured in turn, several times; rows have medians, and ratios to the
echo server of the same run.

A ping is the cheapest message of the protocol that changes nothing: it passes through the same queue as
every other command and is answered, in order, by a pong. A report is answered by a delta.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.datasets import Dataset
from bench.reports import Progress, Row
from bench.server import echo as echoing
from bench.server import lines as ways
from bench.server.connections import Connections
from bench.server.fleets import Fleets
from bench.server.lines import Awaited, opened
from bench.server.processes import Process, running
from bench.server.workload import PUBLISHED_MAX, Workload

READY = "serving on "
VARIANTS = ("connections", "shared", "fleet")
_SHARED = 10
"""Connections of the variant `shared`."""
_WAITING_MAX = 4
"""Requests to publish that are under way at once."""
_PUBLISH_S = 600.0


@dataclass(frozen=True, slots=True)
class ServerParameters:
    """Size and shape of a run.

    Parameters
    ----------
    objects
        How many are there.
    k_max
        k is uniform from 1 to this.
    seconds
        Length of one measurement.
    rounds
        How often each is repeated.
    variants
        ``connections``, one for each device, ``shared``, a stream for each on some connections, as
        through a gateway, or ``fleet``, streams that they share. Each has a server of its own.
    """

    objects: int = 100_000
    k_max: int = 10
    seconds: float = 5.0
    rounds: int = 3
    seed: int = 1
    variants: Sequence[str] = VARIANTS


@contextmanager
def serving(workload: Workload, folder: Path) -> Iterator[Process]:
    """Run a server with an empty store."""
    area = ",".join(repr(bound) for bound in workload.area)
    store = folder / "store.db"
    flags = [f"--area={area}", "--port=0", f"--store={store}"]
    with running(["nearcast.cli", "serve", *flags], READY, folder / "server.log") as process:
        yield process


def compile_kernels(workload: Workload) -> None:
    """Run a server that compiles what nobody has yet: the memory which that takes is not later ones'."""
    with tempfile.TemporaryDirectory() as folder, serving(workload, Path(folder)):
        pass


async def published(workload: Workload, server: Process, progress: Progress) -> float:
    """Publish all objects in full requests, a few under way; return how many became durable a second."""
    requests = [request.SerializeToString() for request in workload.requests()]
    answers = Awaited()
    room = asyncio.Semaphore(_WAITING_MAX)

    def hear(_number: int, _message: bytes) -> tuple[bytes, ...]:
        answers.add(1)
        room.release()
        progress(
            "objects", min(answers.count * PUBLISHED_MAX, len(workload.objects)), len(workload.objects)
        )
        return ()

    async with opened(1, server.address, ways.PUBLISH) as (line,):
        line.hear = hear
        await line.start()
        began = time.perf_counter()
        for request in requests:
            await room.acquire()
            await line.say(request)
        await answers.reach(len(requests), _PUBLISH_S)
        return len(workload.objects) / (time.perf_counter() - began)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector keeps still: the load generator's own stalls are nobody's latency."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


async def measure(
    data: Dataset, devices: int, parameters: ServerParameters, progress: Progress
) -> list[Row]:
    """Measure one number of devices: a row for each variant."""
    workload = Workload(data, parameters.objects, devices, parameters.k_max, parameters.seed)
    rows: list[Row] = []
    compile_kernels(workload)
    for variant in parameters.variants:
        with (
            _without_collector(),
            tempfile.TemporaryDirectory() as folder,
            serving(workload, Path(folder)) as server,
            running([echoing.__name__], echoing.READY, Path(folder) / "echo.log") as echo,
        ):
            rows.append(await _measured(variant, workload, parameters, server, echo, progress))
    return rows


async def _measured(
    variant: str,
    workload: Workload,
    parameters: ServerParameters,
    server: Process,
    echo: Process,
    progress: Progress,
) -> Row:
    per_s = await published(workload, server, progress)
    seconds, rounds = parameters.seconds, parameters.rounds
    if variant == "fleet":
        found = await Fleets(workload, server, seconds, rounds).measure(progress)
    else:
        shared = _SHARED if variant == "shared" else None
        found = await Connections(workload, server, echo, seconds, rounds, shared).measure(progress)
    return {
        "variant": variant,
        "objects": parameters.objects,
        "publishes_per_s": round(per_s),
        **found,
    }
