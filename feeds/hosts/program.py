"""Identity of the program: all hosts of a cluster must have the same."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version

from safe_region.packages import package_folder

_PACKAGES = ("engine", "feeds", "index", "nearcast", "safe_region", "simulator", "streaming")
_LIBRARIES = ("pyspark", "numpy", "numba", "pyarrow")


def source_digest() -> str:
    """Return a digest of the modules that tasks may run."""
    return digest_of(_PACKAGES)


@cache
def digest_of(packages: tuple[str, ...]) -> str:
    """Return a digest of the modules of some packages of this program."""
    digest = hashlib.sha256()
    for folder in map(package_folder, packages):
        for path in sorted(folder.rglob("*.py")) if folder is not None else ():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def library_versions() -> dict[str, str]:
    """Return the versions of libraries that must be the same on all hosts."""
    return {name: version(name) for name in _LIBRARIES}
