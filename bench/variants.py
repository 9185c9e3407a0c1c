"""Which variants a benchmark runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bench.errors import BenchError


def chosen(names: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the names asked for, or all that are known.

    Raises
    ------
    BenchError
        If one is not known.
    """
    for name in names:
        if name not in known:
            raise BenchError(f"variant is {name!r}, must be one of {', '.join(known)}")
    return list(dict.fromkeys(names)) or list(known)
