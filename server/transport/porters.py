"""The porters of a server: processes that are started, watched and ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from server.porter.frames import Wire
from server.transport.relay import Handlers, Relay

_log = logging.getLogger(__name__)

_START_S = 60.0
"""A porter that is not ready by then is not coming."""
_AGAIN_S = 1.0
"""Between the end of a porter and the next one in its place."""
_END_S = 3.0
"""A porter that has not ended by then, once its socket is closed, is killed."""


class PorterError(Exception):
    """A porter does not start, or this system cannot have any."""


class Porters:
    """Some processes that listen on one port.

    Parameters
    ----------
    count
        How many.
    handlers
        What is offered.
    options
        Of their gRPC servers.
    """

    def __init__(self, count: int, handlers: Handlers, options: Sequence[tuple[str, int]]) -> None:
        self._count = count
        self._handlers = handlers
        self._options = list((dict(options) | {"grpc.so_reuseport": 1}).items())
        self.relays: set[Relay] = set()
        """One for each porter that is connected."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: list[asyncio.Task[None]] = []
        self._processes: set[asyncio.subprocess.Process] = set()
        self._ready = asyncio.Semaphore(0)

    async def start(self, host: str, port: int, tls: tuple[bytes, bytes] | None) -> int:
        """Start all; return the port.

        Raises
        ------
        OSError
            If the address cannot be listened on.
        PorterError
            If a porter does not start, or this system cannot have any.
        """
        if not hasattr(socket, "SO_REUSEPORT"):
            raise PorterError(
                f"porters is {self._count}, must be 0 on this system: it does not divide the connections "
                "of a port among processes (SO_REUSEPORT)"
            )
        self._held = _reserved(host, port)
        bound = int(self._held.getsockname()[1])
        self._folder = tempfile.TemporaryDirectory(prefix="nearcast-")
        path = str(Path(self._folder.name) / "porters")
        self._server = await asyncio.start_unix_server(self._accept, path)
        settings = {
            "socket": path,
            "address": f"{host}:{bound}",
            "options": self._options,
            "tls": None if tls is None else [one.decode() for one in tls],
        }
        line = json.dumps(settings).encode() + b"\n"
        self._watching = [asyncio.create_task(self._watch(line)) for _ in range(self._count)]
        try:
            async with asyncio.timeout(_START_S):
                for _ in range(self._count):
                    await self._ready.acquire()
        except TimeoutError:
            await self.stop()
            raise PorterError(f"no porter came within {_START_S:.0f} s") from None
        return bound

    async def stop(self) -> None:
        """Break off what is under way, with a status, and end all."""
        for task in self._watching:
            task.cancel()
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._watching, *self._tasks, return_exceptions=True)
        await asyncio.gather(*map(_ended, self._processes))
        self._held.close()
        self._folder.cleanup()

    async def _watch(self, line: bytes) -> None:
        """Keep one porter running."""
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "server.porter", stdin=asyncio.subprocess.PIPE, env=_environment()
            )
            self._processes.add(process)
            await process.communicate(line)
            self._processes.discard(process)
            _log.warning("a porter has ended with status %s; another takes its place", process.returncode)
            await asyncio.sleep(_AGAIN_S)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(Relay(self._handlers, Wire(reader, writer))))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, relay: Relay) -> None:
        self.relays.add(relay)
        try:
            await relay.run(self._ready.release)
        finally:
            self.relays.discard(relay)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for a porter that has heard that the server is gone; not for ever."""
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _environment() -> dict[str, str]:
    """Let porters find this very program."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": root if not path else f"{root}{os.pathsep}{path}"}


def _reserved(host: str, port: int) -> socket.socket:
    """Bind an address that porters can listen on, and that nobody else listens on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen()
        bound = probe.getsockname()[1]
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, bound))
    return held
