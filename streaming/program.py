"""The version of the program, for indexes that lie in memory."""

from __future__ import annotations

from feeds.hosts.program import digest_of

_PACKAGES = ("engine", "index", "safe_region", "streaming")


def program_digest() -> str:
    """Return a digest of all code that determines the layout of indexes in memory."""
    return digest_of(_PACKAGES)
