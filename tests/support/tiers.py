"""What tests need and cost, as markers: so that `make test-quick` can leave out what takes long.

A test has the markers of its folder and of the fixtures that it uses. One that starts a process by
itself says so with `pytest.mark.processes`: without the marker it fails. One that takes more than some
ten seconds of processor time is marked with `pytest.mark.slow`, unless `make test` should have it all the
same; docs/testing.md lists what `make test` then lacks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any

import pytest

FIXTURES = {
    "spark": "spark",
    "redis": "processes",
}

FOLDERS = {
    "tests/bench": {"published", "processes"},
    "tests/chaos": {"processes"},
    "tests/index/papers": {"published"},
    "tests/streaming/spark": {"spark"},
}
"""And what is below them."""

_LEAVES_OUT = re.compile(r"not (?:(\w+)|\((\w+(?: or \w+)*)\))")
_ORDER = ("slow", "spark", "processes", "published")
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork"}
_COMPILES = "safe_region.jit.worker"
"""Is in the command of processes that compile kernels, when these are missing: no test asks for them."""


def markers(path: PurePath, fixtures: Collection[str]) -> set[str]:
    """Return the markers of a test in a file, relative to the root, that uses some fixtures."""
    of_folders = (marks for folder, marks in FOLDERS.items() if path.is_relative_to(folder))
    return set().union(*of_folders) | {mark for fixture, mark in FIXTURES.items() if fixture in fixtures}


def left_out(path: PurePath, expression: str) -> bool:
    """Return whether an expression of `-m` leaves out all tests of a folder, relative to the root.

    Only expressions as `not (spark or processes)` do: these folders need not be imported.
    """
    found = _LEAVES_OUT.fullmatch(expression)
    names = set((found[1] or found[2]).split(" or ")) if found else set()
    return not names.isdisjoint(FOLDERS.get(path.as_posix(), ()))


def rank(test: pytest.Item) -> int:
    """Return when a test begins: first what takes long, so that no process works alone in the end."""
    return min(
        (_ORDER.index(mark.name) for mark in test.iter_markers() if mark.name in _ORDER),
        default=len(_ORDER),
    )


class Guard:
    """Lets tests fail that start a process and have no marker that says so."""

    def __init__(self) -> None:
        self._test = ""
        sys.addaudithook(self._hear)

    @contextmanager
    def watching(self, test: pytest.Item):
        """While the block runs, a test without the markers must not start a process."""
        may_start = any(test.get_closest_marker(name) for name in ("processes", "spark"))
        self._test = "" if may_start else test.nodeid
        yield
        self._test = ""

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._test and event in _STARTS and _COMPILES not in str(arguments):
            pytest.fail(f"{self._test} starts a process, and has no marker `processes`: {arguments[:2]}")
