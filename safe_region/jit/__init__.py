"""Kernels: how they are compiled, where they are kept, and how to have them all before they are needed.

`kernel` is what Python calls, `leaf` and `array_leaf` what kernels call. `compiling` says what is done
otherwise than by numba itself, `cache` where kernels are kept, `ahead` compiles what is missing.
Set `NUMBA_DISABLE_JIT=1` to run kernels as plain Python under a debugger.
"""

from safe_region.jit.decorators import array_leaf, kernel, leaf

__all__ = ["array_leaf", "kernel", "leaf"]
