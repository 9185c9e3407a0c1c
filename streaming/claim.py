"""Which driver a job has: one that was started later takes a checkpoint over, and the older one ends.

A driver may be paused, or cut off from everybody, while another is started in its place. It finds that
out by a file that each driver writes when it starts, and looks at before and behind each batch, and now
and then while it waits. Until then all that it writes lies in folders of its own name, which no manifest
names.
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
    """One driver's right to go on with a job, once it has taken it.

    Parameters
    ----------
    checkpoint
        Of the job.
    """

    def __init__(self, checkpoint: Stored) -> None:
        self._file = checkpoint / _FILE
        self.name = ""
        """Of folders that only this driver writes to."""

    def take(self) -> None:
        """Take the job over from whoever had it."""
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
                f"another driver was started on this checkpoint, on {found['host']}: see {self._file}"
            )
