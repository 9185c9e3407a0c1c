"""Indexes of other packages, which declare them as entry points.

The group of an entry point is `nearcast.` and the setting that chooses the index, such as
`nearcast.clause_index`. A package is trusted once it is installed, and its modules are imported when its
index is made.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

_GROUPS = "nearcast."


@cache
def plugins(setting: str) -> dict[str, EntryPoint]:
    """Return the declared indexes by name.

    Parameters
    ----------
    setting
        The setting that chooses the index, see `index.catalogue.KINDS`.
    """
    return {point.name: point for point in entry_points(group=f"{_GROUPS}{setting}")}


def source_of(point: EntryPoint) -> str:
    """Return the package that declares an index, and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module
