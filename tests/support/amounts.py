"""How much the random tests try, and where their seeds begin.

`make test` tries some, `make test-long` ten times as much. Some seeds begin elsewhere every day, so that
what is tried is not the same for ever; pytest says where in its first lines, and a failing run names its
seed.

    NEARCAST_TEST_TIMES   how many times as much, 1 if not given; less than 1 for less
    NEARCAST_TEST_SEED    where seeds begin, the number of the day if not given
"""

from __future__ import annotations

import os
import time

_DAY_S = 24 * 3600
_APART = 100_000
"""Seeds of one day: far more than are tried."""

TIMES = float(os.environ.get("NEARCAST_TEST_TIMES", "1"))
SEED = int(os.environ.setdefault("NEARCAST_TEST_SEED", str(int(time.time()) // _DAY_S)))
"""For the processes, too, that run tests beside each other: the day may end between their starts."""


def examples(count: int) -> int:
    """Return how many examples to try where `count` are enough in passing."""
    return max(1, round(count * TIMES))


def seeds(count: int, part: int = 1) -> list[range]:
    """Return as many seeds, in parts, of which `TIMES` times `count` make up the whole."""
    first = SEED * _APART
    end = first + max(part, examples(count))
    return [range(start, start + part) for start in range(first, end, part)]


def named(part: range) -> str:
    """Return what a test of some seeds is called."""
    return f"{part.start}-{part.stop - 1}" if len(part) > 1 else str(part.start)
