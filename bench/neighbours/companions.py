"""Run processes of callers: each starts at a line of input and responds with a line of JSON."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.errors import BenchError


class Companion:
    """A module of this package in its own process.

    Parameters
    ----------
    process
        The process, which has received its first line.
    name
        Name for errors.
    """

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process = process
        self._name = name

    def await_ready(self) -> None:
        """Wait for the line by which the process reports that it is ready.

        Raises
        ------
        BenchError
            If the process ends before.
        """
        if self._process.stdout is None or not self._process.stdout.readline():
            raise BenchError(f"{self._name} did not start; see its message above")

    def send(self, line: str = "") -> None:
        """Write a line to the process.

        Raises
        ------
        BenchError
            If the process has ended.
        """
        try:
            print(line, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise BenchError(f"{self._name} ended; see its message above") from None

    def stop(self) -> None:
        """Suspend the process."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Resume the suspended process."""
        self._process.send_signal(signal.SIGCONT)

    def result(self, within_s: float) -> Any:  # noqa: ANN401 - any JSON value
        """Return the JSON value that the process has written; None if it does not end in time."""
        try:
            written, _ = self._process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(written) if written.strip() else None


@contextmanager
def companion(module: str, *arguments: str, first: object) -> Iterator[Companion]:
    """Run a module until the block ends, and send its first line, of JSON.

    Tokens are in that line and not among the arguments, which all users of the machine can read.
    """
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = Companion(process, module)
        found.send(json.dumps(first))
        yield found
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
