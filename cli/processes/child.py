"""A process that is started again when it ends, after a pause that grows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import IO

from cli import tied

_log = logging.getLogger(__name__)

PAUSE_S = 1.0
PAUSE_S_MAX = 30.0
_STEADY_S = 60.0
"""After running for this time, a process that ends is started again after the shortest pause."""
_STOPPED = (0, -signal.SIGTERM)
"""A process that was still starting ends by the signal."""

Ready = Callable[[asyncio.subprocess.Process], Awaitable[bool]]


class ChildError(Exception):
    """A process has ended before it was ready."""


class Child:
    """A process. It is killed when this process is gone.

    Parameters
    ----------
    name
        Its name in messages.
    command
        The command.
    is_ready
        Waits until it is ready, or has ended; returns which.
    output
        Where its standard output and error go; by default a pipe, and the error of this process.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        is_ready: Ready,
        output: Callable[[], IO[bytes]] | None = None,
    ) -> None:
        self.name = name
        self._command = command
        self._is_ready = is_ready
        self._output = output
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process, and wait until it is ready.

        Raises
        ------
        ChildError
            If it ends before.
        """
        with contextlib.ExitStack() as stack:
            output = None if self._output is None else stack.enter_context(self._output())
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                tied.__file__,
                str(os.getpid()),
                *self._command,
                stdout=asyncio.subprocess.PIPE if output is None else output,
                stderr=output,
                process_group=0,  # Ctrl-C interrupts this process only, which then stops the others
            )
        if not await self._is_ready(self._process):
            status = await self._process.wait()
            raise ChildError(f"{self.name} has ended with status {status} before it was ready")

    async def keep(self) -> None:
        """Start the process again whenever it ends, until cancelled."""
        pause_s = PAUSE_S
        while True:
            started_s = time.monotonic()
            assert self._process is not None  # noqa: S101 - for the type checker
            status = await self._process.wait()
            if time.monotonic() - started_s > _STEADY_S:
                pause_s = PAUSE_S
            text = "%s has ended with status %d; it is started again in %g s"
            _log.warning(text, self.name, status, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, PAUSE_S_MAX)
            with contextlib.suppress(ChildError):
                await self.start()

    async def stop(self, patience_s: float) -> bool:
        """Stop the process; return whether it has ended by itself in time and without an error."""
        process = self._process
        if process is None:
            return True
        if process.returncode is not None:
            return process.returncode == 0
        process.terminate()
        try:
            async with asyncio.timeout(patience_s):
                return await process.wait() in _STOPPED
        except TimeoutError:
            process.kill()
            await process.wait()
            return False
