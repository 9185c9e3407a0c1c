"""Which version of nearcast this is."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"
"""Of a copy of the source that is not installed."""
_DISTRIBUTIONS = ("nearcast", "nearcast-sdk")
"""The whole project, and the SDK alone."""


def installed_version() -> str:
    """Return the version that is installed."""
    for distribution in _DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            return version(distribution)
    return UNKNOWN
