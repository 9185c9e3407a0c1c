"""The claim of a driver on a job: a later driver takes over the checkpoint, and the older driver ends.

A driver may be paused, or cut off from the network, while another driver is started in its place. Each
driver writes a file when it starts. It reads the file before and after each batch, and from time to time
while it waits, and so finds out that another driver has taken over. Until then all its output is in
folders with its own name, which no manifest names.
"""

from __future__ import annotations

import json
import platform
import secrets
import time

from feeds.storage import Stored

_FILE = "driver.json"


class TakenOverError(Exception):
    """Another driver has been started on the same checkpoint."""


class Claim:
    """The right of one driver to run a job, once it has taken the job over.

    Parameters
    ----------
    checkpoint
        The checkpoint of the job.
    """

    def __init__(self, checkpoint: Stored) -> None:
        self._file = checkpoint / _FILE
        self.name = ""
        """The name of the folders that only this driver writes to."""

    def take(self) -> None:
        """Take the job over from the driver that had it, under a new name.

        Raises
        ------
        TakenOverError
            If this driver had the job, and another one has taken it over since.
        """
        if self.name:
            self.require()
        before = json.loads(self._file.read())["number"] if self._file.exists() else 0
        number = before + 1
        self.name = f"{number}-{secrets.token_hex(4)}"
        about = {
            "number": number,
            "name": self.name,
            "host": platform.node(),
            "started_ms": time.time_ns() // 1_000_000,
        }
        self._file.replace(json.dumps(about).encode() + b"\n")

    def require(self) -> None:
        """Require that no other driver has taken the job over.

        Raises
        ------
        TakenOverError
            If one has.
        """
        found = json.loads(self._file.read())
        if found["name"] != self.name:
            raise TakenOverError(
                f"another driver has claimed this checkpoint, on host {found['host']}: see {self._file}"
            )
