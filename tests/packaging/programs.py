"""Commands of an environment that run until they are stopped."""

from __future__ import annotations

import signal
import subprocess
from typing import Self

from tests.packaging.environment import Environment

_STOP_S = 60


class Program:
    """A command of `nearcast` that prints its address, for as long as a block runs."""

    def __init__(self, environment: Environment, ready: str, *arguments: str, **variables: str) -> None:
        self._ready = ready
        self._process = subprocess.Popen(
            [environment.command("nearcast"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=environment.folder,
            env=environment.variables() | variables,
        )

    def __enter__(self) -> Self:
        line = self._process.stdout.readline()
        if not line.startswith(self._ready):
            _, messages = self._process.communicate(timeout=_STOP_S)
            raise AssertionError(f"{line}{messages}")
        self.address = line.removeprefix(self._ready).strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=_STOP_S)
        assert self._process.returncode == 0
