"""Which version of nearcast this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

UNKNOWN = "unknown"
"""Of a copy of the source that is not installed."""


def installed_version() -> str:
    """Return the version that is installed."""
    try:
        return version("nearcast")
    except PackageNotFoundError:
        return UNKNOWN
