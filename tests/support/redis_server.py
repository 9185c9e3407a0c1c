"""A server of Redis for tests, which can be killed and comes back with what it has acknowledged."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from feeds.redis import RedisAddress

_READY_S = 30.0


class RedisServer:
    """A server on a port of its own, in a folder.

    Parameters
    ----------
    program
        Where `redis-server` is.
    folder
        For its log.
    """

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, feed: str, streams: int = 1) -> RedisAddress:
        """Return the address of a feed."""
        return RedisAddress(f"redis://127.0.0.1:{self.port}/0", feed, streams)

    def client(self) -> Redis:
        """Return a client of it."""
        return Redis(port=self.port)

    def start(self) -> None:
        """Start, with all that was acknowledged before."""
        options = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(self._folder),
        ]
        options += ["--appendonly", "yes", "--appendfsync", "always"]
        self._process = subprocess.Popen([self._program, *options], stdout=subprocess.DEVNULL)
        end_s = time.monotonic() + _READY_S
        while time.monotonic() < end_s:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise TimeoutError(f"redis-server does not listen on port {self.port}")

    def kill(self) -> None:
        """Kill it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """Start a server; skip the test where there is no `redis-server`."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed (Debian: apt install redis-server)")
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(program, folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
