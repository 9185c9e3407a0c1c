"""A server in a process of its own.

The process gets its settings as a line of JSON on its standard input, so that no secret is on a command
line, and writes one line of JSON: its port, or the reason why it cannot start. It stops when its standard
input ends, so it does not outlive this process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from nearcast_server.errors import StartError, missing_package
from nearcast_server.packages import FOLDER

_STOP_S = 30.0
"""Time that a server has to stop. It usually takes less than a second."""


class ServerProcess:
    """Starts a server, and returns when it serves.

    Parameters
    ----------
    settings
        Settings of the server.

    Raises
    ------
    StartError
        If it cannot be started.
    MissingPackageError
        If a package is not installed.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        # A session of its own: Ctrl-C is for this process, which then stops the server.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nearcast_server.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            text=True,
            start_new_session=True,
        )
        try:
            self.port = self._started(settings)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server; kill it if it does not stop."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(_STOP_S)
        except BaseException as error:
            process.kill()
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise

    def _started(self, settings: dict[str, Any]) -> int:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise AssertionError("the process has pipes")
        try:
            stdin.write(json.dumps(settings, default=_plain) + "\n")
            stdin.flush()
            response = json.loads(stdout.readline() or "{}")
        except OSError:  # it has ended before it read its settings
            response = {}
        if "port" in response:
            return int(response["port"])
        if "missing" in response:
            raise missing_package(response["missing"], "server")
        status = self._process.wait(_STOP_S) if not response else None
        raise StartError(response.get("error", f"the process of the server ended with status {status}"))


def _environment() -> dict[str, str]:
    """Return the environment of the process: it imports from where this process imports.

    Our packages come first. A module of the app may have the name of one of them, such as `server`.
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), *filter(None, sys.path)])}


def _plain(value: object) -> str:
    """Return a setting as JSON can have it."""
    if isinstance(value, Path):
        return str(value)
    raise StartError(f"settings have {value!r}, must have texts, numbers, paths and lists of them")
