"""Which program this is, as far as indexes that lie in memory are concerned."""

from __future__ import annotations

from feeds.hosts.program import digest_of

_PACKAGES = ("engine", "index", "safe_region", "streaming")


def program_digest() -> str:
    """Return a digest of all that decides how indexes lie in memory."""
    return digest_of(_PACKAGES)
