"""A real server process on a port and a store of its own, and what can be done to it."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import subprocess
import sys
from pathlib import Path

from cli.serve import READY
from tests.chaos.launcher import LAYOUT
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
AREA = "14,35,15,36"
LEASE_MS = 600_000


class ServerProcess:
    """`nearcast serve`, started again and again on the same port and store.

    Parameters
    ----------
    folder
        Where its store, its log and its control file lie.
    virtual_time
        Whether the test drives the time.
    """

    def __init__(self, folder: Path, *, virtual_time: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.store = folder / "store.db"
        self.log_of_store = folder / "store.db-wal"
        self.log = folder / "server.log"
        self._control = folder / "control"
        self._virtual_time = virtual_time
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.target = f"127.0.0.1:{self.port}"
        self.starts = 0
        self.lease_ms = LEASE_MS
        self.bend()

    def bend(self, clock_offset_s: float = 0.0, commit_delay_s: float = 0.0) -> None:
        """Set how far its wall clock is off, and how much longer every commit takes; at once."""
        page = LAYOUT.pack(round(clock_offset_s * 1e9), commit_delay_s)
        with self._control.open("r+b" if self._control.exists() else "wb") as file:
            file.write(page)

    async def start(self) -> None:
        """Start it; return when it serves. Raises RuntimeError with what it said if it does not."""
        command = [sys.executable, "-m", "tests.chaos.launcher", str(self._control), "serve"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - a millisecond
                [*command, *self._flags()], stdout=subprocess.PIPE, stderr=log, cwd=ROOT
            )
        line = await asyncio.to_thread(self._process.stdout.readline)
        if not line.startswith(READY.encode()):
            raise RuntimeError(f"the server did not start: {self.last_words()}")
        self.starts += 1

    def _flags(self) -> list[str]:
        flags = [f"--area={AREA}", f"--port={self.port}", f"--store={self.store}", "--create"]
        flags.append(f"--lease-ms={self.lease_ms}")
        return [*flags, "--virtual-time"] if self._virtual_time else flags

    def last_words(self) -> str:
        """Return whether it runs, and the end of its log."""
        if self._process is None:
            return "it has not been started"
        status = self._process.poll()
        runs = "it runs" if status is None else f"it ended with {status}"
        return f"{runs}; its log ends {self.log.read_text()[-300:]!r}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """Kill it with signal 9, at whatever it is doing."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def limit_files(self, bytes_max: int | None) -> None:
        """Let none of its files grow beyond a size: writes fail as on a full disk. None lifts it."""
        soft = resource.RLIM_INFINITY if bytes_max is None else bytes_max
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))

    async def stop(self) -> int:
        """End it with SIGTERM; return its exit status."""
        if not self.is_running:
            return 0
        self.go_on()
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, 30)
        if self._process.poll() is None:
            self._process.kill()
        status = self._process.wait()
        self._process.stdout.close()
        return status
