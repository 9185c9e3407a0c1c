"""Which program this is, as far as indexes that lie in memory are concerned."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PACKAGES = ("engine", "index", "safe_region", "streaming")


@cache
def program_digest() -> str:
    """Return a digest of all that decides how indexes lie in memory."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
