"""Choose the folder of compiled kernels.

numba does not notice an edit in *another* file from which a cached kernel calls a function or uses a
constant. So the name of the cache folder is a digest of every kernel source: a change of one source
recompiles all kernels. numba does not notice `NUMBA_BOUNDSCHECK` either: kernels with bounds checks have
a separate folder. Set `NUMBA_CACHE_DIR` to choose the parent folder.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba
from platformdirs import user_cache_path

from safe_region.packages import package_folder

_PACKAGES = ("safe_region", "index", "engine", "server", "simulator", "bench")
_NAMES = ("*kernels.py", "layout.py", "closeness.py")
_SHARED = ("scoring/formulas.py", "geometry/exact_geometry.py")
"""Plain Python of this package with functions or constants that kernels use."""


def kernel_sources() -> list[Path]:
    """Return the sources of compiled functions: kernels, modules of their constants, this package."""
    here = Path(__file__).resolve().parent
    folders = [folder for folder in map(package_folder, _PACKAGES) if folder is not None]
    found = [path for folder in folders for name in _NAMES for path in folder.rglob(name)]
    shared = [here.parent / name for name in _SHARED]
    return sorted([*found, *shared, *here.glob("*.py")])


def _cache_folder() -> Path:
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(bytes([bool(numba.config.BOUNDSCHECK)]))  # type: ignore[attr-defined]
    for path in kernel_sources():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else user_cache_path("nearcast") / "numba"
    return base / digest.hexdigest()[:16]


CACHE_FOLDER = _cache_folder()

numba.config.CACHE_DIR = str(CACHE_FOLDER)  # type: ignore[attr-defined]
