"""Define the decorators of kernels, and of leaves, which only kernels call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba.core import config

import safe_region.jit.cache  # noqa: F401 - sets the folder of numba's cache
from safe_region.jit.dispatchers import Kernel, Leaf

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls.

    It is cached on disk if there is space, releases the GIL, and never uses fastmath.
    """
    return cast("_Function", function if config.DISABLE_JIT else Kernel(function))


def leaf(function: _Function) -> _Function:
    """Compile a function that only kernels call; it is cached with its callers.

    It is compiled without reference counts (and so can neither allocate arrays nor return any). Counting
    references, atomically, took more than half of the time of kernels whose functions are too large to be
    inlined.
    """
    return cast("_Function", function if config.DISABLE_JIT else Leaf(function))


def array_leaf(function: _Function) -> _Function:
    """Compile a function that only kernels call, and that allocates or returns arrays."""
    return cast("_Function", function if config.DISABLE_JIT else Leaf(function, counts=True))
