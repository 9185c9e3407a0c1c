"""Installed version of nearcast."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"
"""Version of a copy of the source that is not installed."""
_DISTRIBUTIONS = ("nearcast-dev", "nearcast")
"""Distributions: a checkout for development, and the SDK."""


def installed_version() -> str:
    """Return the installed version, or `UNKNOWN`."""
    for distribution in _DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            return version(distribution)
    return UNKNOWN
