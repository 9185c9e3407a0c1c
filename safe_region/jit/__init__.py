"""Compile kernels, cache them, and compile all of them before they are needed.

Python calls a `kernel`; kernels call a `leaf` or an `array_leaf`. `compiling` describes the differences
from numba's own compilation, `cache` chooses the folder of compiled kernels, and `ahead` compiles missing
kernels. Set `NUMBA_DISABLE_JIT=1` to run kernels as plain Python under a debugger.
"""

from safe_region.jit.decorators import array_leaf, kernel, leaf

__all__ = ["array_leaf", "kernel", "leaf"]
