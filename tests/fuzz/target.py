"""What is fuzzed: a function that takes bytes and raises what is a finding."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PREFIX = "nearcast-fuzz-"


class Target(NamedTuple):
    """Something that takes whatever others send, or do."""

    name: str
    make: Callable[[], Callable[[bytes], None]]
    """Returns what is called with each input. Whatever it raises is a finding."""
    seeds: Callable[[], Sequence[bytes]]
    """Inputs that are as they should be, to begin with."""
    instrumented: tuple[str, ...]
    """Modules of which it is followed what an input reaches."""
    inputs: int
    """How many, in proportion to those of the other targets."""


def scratch_folder() -> Path:
    """Return a new folder, which is deleted when the process exits."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
