"""Leaves as kernels call them."""

from __future__ import annotations

from typing import TypeVar

_Leaf = TypeVar("_Leaf")


def compiled(leaf: _Leaf) -> _Leaf:
    """Return a leaf compiled by itself. With NUMBA_DISABLE_JIT, nothing is compiled."""
    found: _Leaf = getattr(leaf, "compiled", leaf)
    return found
