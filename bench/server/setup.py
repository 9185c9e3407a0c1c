"""Run a server that is ready to be measured: its kernels compiled, its objects published."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.benchmark import Progress
from bench.datasets import source
from bench.server import lines as ways
from bench.server.experiments import LoadParameters
from bench.server.lines import Awaited, opened
from bench.server.processes import Process, running
from bench.server.workload import PUBLISHED_MAX, Workload

_READY = "serving on "
_WAITING_MAX = 4
"""Maximum number of pending requests to publish."""
_PUBLISH_S = 600.0


def drawn(parameters: LoadParameters, boolean_share: float = 0.0) -> Workload:
    """Draw objects and devices."""
    return Workload(
        source(parameters.data),
        parameters.objects,
        parameters.devices,
        parameters.k_max,
        parameters.seed,
        boolean_share,
    )


@contextmanager
def serving(
    workload: Workload, folder: Path, port: int = 0, flags: Sequence[str] = ()
) -> Iterator[Process]:
    """Run a server with the store of a folder, on any port by default."""
    area = ",".join(repr(bound) for bound in workload.area)
    store = folder / "store.db"
    own = [f"--area={area}", f"--port={port}", f"--store={store}", "--create"]
    with running(["cli", "serve", *own, *flags], _READY, folder / "server.log") as process:
        yield process


def compile_kernels(workload: Workload) -> None:
    """Run a server that compiles missing kernels, so that later ones do not need the memory for it."""
    with tempfile.TemporaryDirectory() as folder, serving(workload, Path(folder)):
        pass


async def published(
    workload: Workload,
    server: Process,
    progress: Progress,
    metadata: Sequence[tuple[str, str]] = (),
) -> float:
    """Publish all objects in full requests, a few pending at a time; return the objects a second."""
    requests = [request.SerializeToString() for request in workload.requests()]
    answers = Awaited()
    room = asyncio.Semaphore(_WAITING_MAX)

    def on_message(_number: int, _message: bytes) -> tuple[bytes, ...]:
        answers.add(1)
        room.release()
        progress(
            "objects", min(answers.count * PUBLISHED_MAX, len(workload.objects)), len(workload.objects)
        )
        return ()

    async with opened(1, server.address, ways.PUBLISH, metadata) as (line,):
        line.on_message = on_message
        await line.start()
        began = time.perf_counter()
        for request in requests:
            await room.acquire()
            await line.send(request)
        await answers.reach(len(requests), _PUBLISH_S)
        return len(workload.objects) / (time.perf_counter() - began)
