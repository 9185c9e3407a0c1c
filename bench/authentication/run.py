"""Measure the cost of authentication, and the effect of one intruder on honest devices.

Variant `cost`: two servers, one without authentication and one that requires signed tokens, hold the same
objects and devices. They are measured in turn: reports on fleet streams, requests to publish on one
stream. CPU is that of the whole server process, as the kernel accounts it.

Variant `intruder`: one server requires tokens. Honest devices, each with its own token and connection,
report at a fixed rate, in turn with and without an intruder. The intruder is another process with the
token of one device, which it misuses in all ways at once (`bench.authentication.intruder`). Honest
devices keep their p99 if its median with the intruder is at most the highest p99 without it.
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
from identity.issuer import Issuer
from identity.principal import Role

_OPEN, _GUARDED = "open", "guarded"
_BATCH = 100
"""Objects in one request to publish."""
_UNLIMITED = ("--gateway-rate=1e9", "--publisher-rate=1e9")

Metadata = Sequence[tuple[str, str]]


class _Tokens:
    """Tokens signed by a key of this run."""

    def __init__(self, folder: Path) -> None:
        self._issuer = Issuer()
        self.path = folder / "keys.json"
        self.path.write_text(self._issuer.key_set(), encoding="utf-8")

    def text(self, name: str, role: Role) -> str:
        """Return a token."""
        return self._issuer.token(name, [role], ttl_s=86_400.0)

    def metadata(self, name: str, role: Role) -> Metadata:
        """Return the metadata of a call."""
        return (("authorization", f"Bearer {self.text(name, role)}"),)


@contextmanager
def _both(workload: Workload, folder: Path, tokens: _Tokens) -> Iterator[dict[str, Process]]:
    """Run a server without authentication and one with it."""
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
    """Publish on one stream; send a request as soon as the previous one is answered."""
    message = workload.pushed(count).SerializeToString()
    async with opened(1, server.address, ways.PUBLISH, metadata) as lines:
        await lines[0].start()
        return await closed_loop(lines, [[message]], server, seconds)


def _compared(what: str, found: dict[str, list[Rate]]) -> Row:
    """Return medians of rates, and the medians of the ratios of consecutive measurements."""
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
    """Let one device misuse its token in all ways at once, in its own process."""
    # The token is not an argument: other users of the machine can read arguments.
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program, starts at once
        [sys.executable, "-m", "bench.authentication.intruder", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        has_started = await asyncio.to_thread(_send_line, process, token)
        if not has_started:
            raise BenchError("the intruder did not start; see its message above")
        yield
    finally:
        process.kill()
        process.communicate()


def _send_line(process: subprocess.Popen[str], line: str) -> bool:
    """Write a line to a process; return whether the process has started, which it reports with a line."""
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
    """Measure the cost of tokens, and the effect of one intruder on others."""

    VARIANTS = ("cost", "intruder")

    @classmethod
    def check(cls, variant: str, parameters: AuthenticationParameters) -> None:
        """Require enough open files for all devices."""
        del variant
        require_files(parameters.devices)

    def measure(self, variant: str, parameters: AuthenticationParameters) -> list[Row]:
        """Measure servers that are started for this run."""
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
