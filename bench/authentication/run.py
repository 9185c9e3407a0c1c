"""What asking everybody who he is costs, and what one intruder does to honest devices.

Variant `cost`: two servers, one that asks nobody and one that asks for signed tokens, hold the same
objects and devices and are measured in turn: reports on fleet streams, requests to publish on one stream.
CPU is all of the server process, by the kernel's account.

Variant `intruder`: one server that asks for tokens; honest devices, each with its own token and
connection, report at a pace, in turn with and without an intruder: another process with the token of one
device, which uses it in all ways at once (`bench.authentication.intruder`). Whether honest devices keep
their p99 is whether its median with the intruder lies within the range of those without.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from bench.authentication.experiments import AuthenticationParameters
from bench.benchmark import Benchmark, Progress, Row
from bench.datasets import source
from bench.errors import BenchError
from bench.server import lines as ways
from bench.server import loop
from bench.server.connections import attach
from bench.server.fleets import Fleets
from bench.server.lines import opened
from bench.server.measures import Rate, closed_loop, paced
from bench.server.processes import Process, require_files
from bench.server.setup import compile_kernels, published, serving
from bench.server.workload import Workload
from server.identity.issuer import Issuer
from server.principal import Role

_OPEN, _GUARDED = "open", "guarded"
_BATCH = 100
"""Objects in one request to publish."""
_UNLIMITED = ("--gateway-rate=1e9", "--publisher-rate=1e9")

Metadata = Sequence[tuple[str, str]]


class _Tokens:
    """Signed by a key of this run."""

    def __init__(self, folder: Path) -> None:
        self._issuer = Issuer()
        self.path = folder / "keys.json"
        self.path.write_text(self._issuer.key_set(), encoding="utf-8")

    def text(self, name: str, role: Role) -> str:
        """Return a token."""
        return self._issuer.token(name, [role], ttl_s=86_400.0)

    def metadata(self, name: str, role: Role) -> Metadata:
        """Return what a call begins with."""
        return (("authorization", f"Bearer {self.text(name, role)}"),)


@contextmanager
def _both(workload: Workload, folder: Path, tokens: _Tokens) -> Iterator[dict[str, Process]]:
    """Run a server of each sort."""
    flags: dict[str, Sequence[str]] = {
        _OPEN: (),
        _GUARDED: (f"--jwks={tokens.path}", *_UNLIMITED),
    }
    with ExitStack() as stack:
        found = {}
        for name, some in flags.items():
            place = folder / name
            place.mkdir()
            found[name] = stack.enter_context(serving(workload, place, flags=some))
        yield found


async def _cost(
    workload: Workload, parameters: AuthenticationParameters, progress: Progress
) -> list[Row]:
    rounds = parameters.rounds
    reports: dict[str, list[Rate]] = {_OPEN: [], _GUARDED: []}
    singles: dict[str, list[Rate]] = {_OPEN: [], _GUARDED: []}
    batches: dict[str, list[Rate]] = {_OPEN: [], _GUARDED: []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tokens = _Tokens(folder)
        who = {
            _OPEN: ((), ()),
            _GUARDED: (
                tokens.metadata("gate", Role.GATEWAY),
                tokens.metadata("shop", Role.PUBLISHER),
            ),
        }
        with _both(workload, folder, tokens) as servers:
            for name, server in servers.items():
                await published(workload, server, progress, who[name][1])
            fleets = {
                name: Fleets(workload, server, parameters.seconds, rounds, who[name][0])
                for name, server in servers.items()
            }
            for number in range(rounds):
                order = (_OPEN, _GUARDED) if number % 2 == 0 else (_GUARDED, _OPEN)
                for name in order:
                    reports[name].append(await fleets[name].reanchors())
                for found, count in ((singles, 1), (batches, _BATCH)):
                    for name in order:
                        rate = await _publishing(
                            workload, servers[name], who[name][1], count, parameters.seconds
                        )
                        found[name].append(rate)
                progress("cost", number + 1, rounds)
    return [
        _compared("report", reports),
        _compared("request of one object", singles),
        _compared(f"request of {_BATCH} objects", batches),
    ]


async def _publishing(
    workload: Workload, server: Process, metadata: Metadata, count: int, seconds: float
) -> Rate:
    """Publish on one stream, a request as soon as the one before is answered."""
    message = workload.pushed(count).SerializeToString()
    async with opened(1, server.address, ways.PUBLISH, metadata) as lines:
        await lines[0].start()
        return await closed_loop(lines, [[message]], server, seconds)


def _compared(what: str, found: dict[str, list[Rate]]) -> Row:
    """Return medians, and the medians of what differs between neighbours in time."""
    row: Row = {"what": what, "lists_audited": 0, "mismatches": 0}
    for name, rates in found.items():
        row[f"{name}_per_s"] = round(statistics.median(one.per_s for one in rates))
        row[f"{name}_cpu_us"] = round(statistics.median(one.cpu_us for one in rates), 1)
    pairs = list(zip(found[_OPEN], found[_GUARDED], strict=True))
    row["cpu_ratio"] = round(statistics.median(b.cpu_us / a.cpu_us for a, b in pairs), 3)
    row["rate_ratio"] = round(statistics.median(b.per_s / a.per_s for a, b in pairs), 3)
    return row


@asynccontextmanager
async def _intruder(address: str, token: str) -> AsyncIterator[None]:
    """Let one device use its token in all ways at once, in a process of its own."""
    # The token is no argument: those are for everybody to see.
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - ours, and begins at once
        [sys.executable, "-m", "bench.authentication.intruder", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        has_started = await asyncio.to_thread(_send_line, process, token)
        if not has_started:
            raise BenchError("the intruder does not start; its message is above")
        yield
    finally:
        process.kill()
        process.communicate()


def _send_line(process: subprocess.Popen[str], line: str) -> bool:
    """Give a process a line; return whether it has begun, which it tells with one of its own."""
    if process.stdin is None or process.stdout is None:
        return False
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    return process.stdout.readline() != ""


async def _beside(
    workload: Workload, parameters: AuthenticationParameters, progress: Progress
) -> list[Row]:
    rows: dict[bool, list[Row]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tokens = _Tokens(folder)
        flags = (f"--jwks={tokens.path}", *_UNLIMITED)
        with serving(workload, folder, flags=flags) as server:
            await published(workload, server, progress, tokens.metadata("shop", Role.PUBLISHER))
            before_bytes = server.rss_bytes()

            def metadata(number: int) -> Metadata:
                return tokens.metadata(workload.device_id(number), Role.DEVICE)

            count = workload.devices
            async with opened(count, server.address, ways.ATTACH, metadata) as lines:
                await attach(lines, workload)
                messages = workload.rounds()
                for number in range(parameters.rounds):
                    for is_there in (False, True) if number % 2 == 0 else (True, False):
                        async with _maybe(is_there, server.address, tokens.text("thief", Role.DEVICE)):
                            found = await paced(
                                lines, messages, parameters.reports_per_s, parameters.seconds
                            )
                        rows[is_there].append(found.row("report"))
                    progress("intruder", number + 1, parameters.rounds)
            rss_mb = round((server.rss_bytes() - before_bytes) / 1e6, 1)
    without = [row["report_ms_p99"] for row in rows[False]]
    beside = [row["report_ms_p99"] for row in rows[True]]
    return [
        {
            "what": "report of an honest device",
            "p99_ms_without": statistics.median(without),
            "p99_ms_without_min": min(without),
            "p99_ms_without_max": max(without),
            "p99_ms_beside": statistics.median(beside),
            "p99_ms_beside_max": max(beside),
            "is_kept": statistics.median(beside) <= max(without),
            "rss_mb_more": rss_mb,
            "lists_audited": 0,
            "mismatches": 0,
        }
    ]


@asynccontextmanager
async def _maybe(is_there: bool, address: str, token: str) -> AsyncIterator[None]:  # noqa: FBT001
    if not is_there:
        yield
        return
    async with _intruder(address, token):
        yield


class AuthenticationBenchmark(Benchmark[AuthenticationParameters]):
    """What tokens cost, and what one intruder does to others."""

    VARIANTS = ("cost", "intruder")

    @classmethod
    def check(cls, variant: str, parameters: AuthenticationParameters) -> None:
        """Require open files for all devices."""
        del variant
        require_files(parameters.devices)

    def measure(self, variant: str, parameters: AuthenticationParameters) -> list[Row]:
        """Measure servers that are started for it."""
        workload = Workload(
            source(parameters.data),
            parameters.objects,
            parameters.devices,
            parameters.k_max,
            parameters.seed,
        )
        compile_kernels(workload)
        measured = _cost if variant == "cost" else _beside
        return loop.run(measured(workload, parameters, self.progress))
