"""The check of a host that an executor runs.

The driver sends this module by value, since the package may be missing on the host. At the top it imports
the standard library only.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple


class Report(NamedTuple):
    """Errors of a host; an empty list if there are none."""

    host: str
    errors: list[str]


@dataclass(frozen=True)
class Probe:
    """Requirements of a host, and their check.

    Parameters
    ----------
    versions
        Versions of packages, by name.
    program
        Digest of the program.
    memory, memory_bytes
        A folder, and the bytes that must be free there; empty for no folder.
    folders
        Folders that must exist.
    marks
        Contents of files that must exist, by URI. They show that a folder is the driver's folder.
    pause_s
        Shortest time of a task, so that no slot gets two tasks while another has none.
    """

    versions: Mapping[str, str]
    program: str
    memory: str
    memory_bytes: int
    folders: tuple[str, ...]
    marks: Mapping[str, str]
    pause_s: float

    def __call__(self, _: Iterable[object]) -> Iterator[Report]:
        """Yield the report of this host. A task of Spark calls this method."""
        time.sleep(self.pause_s)
        checks = self._libraries, self._program, self._memory, self._folders
        yield Report(platform.node(), [line for check in checks for line in check()])

    def _libraries(self) -> Iterator[str]:
        for name, version in self.versions.items():
            try:
                found = metadata.version(name)
            except metadata.PackageNotFoundError:
                yield f"the package {name} is missing, must be version {version}"
                continue
            if found != version:
                yield f"{name} is version {found}, must be {version}, as at the driver"

    def _program(self) -> Iterator[str]:
        try:
            from feeds.hosts.program import source_digest  # noqa: PLC0415
        except ImportError as error:
            yield f"nearcast cannot be imported ({error})"
            return
        if source_digest() != self.program:
            yield "the version of nearcast differs from that at the driver"

    def _memory(self) -> Iterator[str]:
        if not self.memory:
            return
        try:
            found = os.statvfs(self.memory)
        except OSError as error:
            yield f"memory {self.memory}: {error.strerror}"
            return
        free = found.f_bavail * found.f_frsize
        if free < self.memory_bytes:
            least = self.memory_bytes >> 20
            yield f"memory {self.memory} has {free >> 20} MiB free, must have at least {least}"
        if not os.access(self.memory, os.W_OK):
            yield f"memory {self.memory} cannot be written to"

    def _folders(self) -> Iterator[str]:
        for folder in self.folders:
            if not Path(folder).is_dir():
                yield f"{folder} does not exist"
        for uri, text in self.marks.items():
            try:
                from pyarrow.fs import FileSystem  # noqa: PLC0415

                system, path = FileSystem.from_uri(uri)
                with system.open_input_stream(path) as file:
                    is_same = file.read().decode() == text
            except (ImportError, OSError, ValueError):
                is_same = False
            if not is_same:
                yield f"{uri.rpartition('/')[0]} is not the driver's folder, or cannot be read"
