"""How kernels are compiled: one decorator, one cache.

numba does not notice an edit in *another* file that a cached kernel calls or has a constant from, so the
cache lives in a folder named by a digest of every kernel source: change one and all are compiled afresh.
Set `NUMBA_CACHE_DIR` to choose the folder above it, `NUMBA_DISABLE_JIT=1` to run kernels as plain
Python under a debugger.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba
from platformdirs import user_cache_path

_Kernel = TypeVar("_Kernel", bound=Callable[..., object])

_ROOMS = ("safe_region", "index", "engine", "simulator", "bench")
_NAMES = ("*kernels.py", "layout.py")


def kernel_sources() -> list[Path]:
    """Return what compiled functions depend on: kernels, layouts, `scoring.py`, and this file."""
    root = Path(__file__).resolve().parent.parent
    found = [path for room in _ROOMS for name in _NAMES for path in (root / room).rglob(name)]
    return sorted([*found, root / "safe_region" / "scoring.py", Path(__file__)])


def _cache_folder() -> Path:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in kernel_sources():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else user_cache_path("nearcast") / "numba"
    return base / digest.hexdigest()[:16]


numba.config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]


def kernel(function: _Kernel) -> _Kernel:
    """Compile an entry kernel: cached on disk, if that has room, without the GIL, never fastmath."""
    compiled = numba.njit(cache=True, nogil=True)(function)
    cache = getattr(compiled, "_cache", None)  # none with the JIT off
    if cache is not None:
        cache.save_overload = _unless_full(cache.save_overload)
    return cast("_Kernel", compiled)


def _unless_full(save: Callable[..., None]) -> Callable[..., None]:
    """Do without the cache where it cannot be written: a full disk must not end a server."""

    def save_if_possible(*arguments: object) -> None:
        with contextlib.suppress(OSError):
            save(*arguments)

    return save_if_possible


def leaf(function: _Kernel) -> _Kernel:
    """Compile a function that only kernels call; it is cached with its caller.

    It does without reference counts (and so cannot allocate arrays): counting them, atomically, took more
    than half of the time of kernels whose functions are too large to be inlined.
    """
    return cast("_Kernel", numba.njit(nogil=True, _nrt=False)(function))  # type: ignore[call-overload]
