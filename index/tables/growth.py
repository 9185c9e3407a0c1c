"""How arrays grow: by half while small, by a fifth when large, so that little room is idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables.quad_kernels import GROUP_END, GROUP_FREE_COUNT

_GROUP = 4

_LARGE_BYTES = 1 << 22
_SMALL_SHARE = 0.5
_LARGE_SHARE = 0.2


def longer(array: npt.NDArray[Any], needed: int, step: int = 1) -> npt.NDArray[Any]:
    """Return the array itself if it has the needed length, else one that is longer by a share.

    What is new is zero. The length is a multiple of `step`. O(length), O(1) amortised an element.
    """
    length = len(array)
    if needed <= length:
        return array
    share = _SMALL_SHARE if array.nbytes < _LARGE_BYTES else _LARGE_SHARE
    length = max(needed, length + int(length * share))
    found = np.zeros((-(-length // step) * step, *array.shape[1:]), dtype=array.dtype)
    _bytes_of(found)[: array.nbytes] = _bytes_of(array)
    return found


def longer_pool(nodes: npt.NDArray[Any], meta: Ints, groups: int) -> npt.NDArray[Any]:
    """Return the pool of a quadtree itself if so many groups can be taken from it, else a longer one."""
    needed = int(meta[GROUP_END]) + _GROUP * max(0, groups - int(meta[GROUP_FREE_COUNT]))
    return longer(nodes, needed, _GROUP)


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return what an array consists of. Records copied as such take ten times as long, field by field."""
    return array.reshape(-1).view(np.uint8)
