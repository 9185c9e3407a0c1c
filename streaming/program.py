"""Which program this is: what hosts of a job must have alike."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("engine", "index", "safe_region", "streaming")
_LIBRARIES = ("pyspark", "numpy", "numba", "pyarrow")


@cache
def program_digest() -> str:
    """Return a digest of all that decides how indexes lie in memory."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def library_versions() -> dict[str, str]:
    """Return the versions of libraries that must be the same on all hosts."""
    return {name: version(name) for name in _LIBRARIES}
