"""Processes that each hold the WebSockets of a part of the devices: one may not open files for all."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import NamedTuple

from bench.benchmark import Row
from bench.errors import BenchError
from bench.gateway.experiments import GatewayParameters
from bench.gateway.lines import sockets
from bench.server import loop
from bench.server.connections import attach
from bench.server.listeners import Listeners
from bench.server.processes import require_files
from bench.server.setup import drawn

_ATTACH_S = 900.0
_STOP_S = 30.0


class Part(NamedTuple):
    """The devices of one process.

    Parameters
    ----------
    parameters
        The parameters of the run, from which each process draws the same messages.
    numbers
        The devices of this process.
    address
        The address of its gateway.
    """

    parameters: GatewayParameters
    numbers: Sequence[int]
    address: str


class Crowd:
    """The processes of all parts, which attach their devices together.

    Parameters
    ----------
    lines
        A connection to each process.
    """

    def __init__(self, lines: Sequence[Connection]) -> None:
        self._lines = lines

    def attach(self) -> None:
        """Attach all devices; return when each has its first result."""
        self._each("attach")

    def audit(self) -> Row:
        """Compare the results of a sample of each part with the oracle."""
        rows = self._each("audit")
        return {name: sum(row[name] for row in rows) for name in rows[0]}

    def _each(self, command: str) -> list[Row]:
        for line in self._lines:
            line.send(command)
        return [_received(line) for line in self._lines]


@contextmanager
def crowd(parts: Sequence[Part]) -> Iterator[Crowd]:
    """Run a process for each part; the devices detach when the block ends."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        lines = []
        for part in parts:
            ours, theirs = context.Pipe()
            process = context.Process(target=_run, args=(theirs, part), daemon=True)
            process.start()
            theirs.close()
            stack.callback(process.join, _STOP_S)
            stack.callback(ours.close)
            lines.append(ours)
        yield Crowd(lines)


def _received(line: Connection) -> Row:
    try:
        reply = line.recv()
    except EOFError:
        raise BenchError("a process of devices ended early") from None
    if isinstance(reply, str):
        raise BenchError(reply)
    row: Row = reply
    return row


def _run(line: Connection, part: Part) -> None:
    """Carry out the commands of the benchmark, until it closes the connection."""
    try:
        loop.run(_serve(line, part))
    except (BenchError, TimeoutError, OSError) as error:
        line.send(f"{type(error).__name__}: {error}")
    except EOFError:
        pass


async def _serve(line: Connection, part: Part) -> None:
    require_files(len(part.numbers))
    workload = drawn(part.parameters)
    async with sockets(part.numbers, part.address) as lines:
        listeners = Listeners(workload, lines)
        while True:
            command = await asyncio.to_thread(line.recv)
            if command == "attach":
                await attach(lines, workload, _ATTACH_S)
                line.send({})
            else:
                line.send(await listeners.audit())
