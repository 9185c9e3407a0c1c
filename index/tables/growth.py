"""Growth of arrays: by half while small, by a fifth when large, so that little capacity is unused.

To grow is to copy, and other work waits meanwhile: 50 ms for 20 MB where the system supplies memory
slowly. A process that must not pause reserves capacity for its large arrays (`reserve`). This is address
space, which becomes memory when it is written to. In it the arrays grow without moving, in small steps.
The capacity may lie in files (`rooms_of`), where other processes find the arrays.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from index.tables.quad_kernels import GROUP_END, GROUP_FREE_COUNT

_LARGE_BYTES = 1 << 22
_SMALL_SHARE = 0.5
_LARGE_SHARE = 0.2
_IN_PLACE_SHARE = 0.0625
_GROUP = 4
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_STRICT = "2"


class Capacity(mmap.mmap):
    """Zeroed memory for an array that grows."""

    def occupy(self, start: int, end: int) -> None:
        """Make sure that these bytes can be written to, or raise an error. Here they always can."""


MakeRoom = Callable[[int], Capacity]
"""Returns capacity of this many bytes."""


def _anonymous(count: int) -> Capacity:
    room = Capacity(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room.madvise(mmap.MADV_HUGEPAGE)  # as numpy does
    return room


class Room:
    """The size in bytes up to which a large array grows without moving, 0 for none, and its source."""

    reserved = 0
    make: MakeRoom = staticmethod(_anonymous)


def longer(array: npt.NDArray[Any], needed: int, step: int = 1) -> npt.NDArray[Any]:
    """Return the array itself if it has the needed length, else one that is longer by a fraction.

    New elements are zero. The length is a multiple of `step`. The result may share memory with the array,
    which then must not be a part of one that is in use. O(length), O(1) amortised an element.
    """
    length = len(array)
    if needed <= length:
        return array
    share = _SMALL_SHARE if array.nbytes < _LARGE_BYTES else _LARGE_SHARE
    if _capacity_of(array) is not None:
        share = _IN_PLACE_SHARE
    length = max(needed, length + int(length * share))
    return as_long(array, -(-length // step) * step)


def as_long(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the array itself if it is long enough, else one of exactly this length, as `longer` does."""
    if length <= len(array):
        return array
    shape = (length, *array.shape[1:])
    count = array.dtype.itemsize * math.prod(shape)
    capacity = _capacity_of(array)
    if capacity is not None and count <= len(capacity):
        capacity.occupy(array.nbytes, count)
        whole = np.ndarray(len(capacity), np.uint8, capacity)
    else:
        whole = _zeros(count)
        # Copying them as records, field by field, takes ten times as long.
        whole[: array.nbytes] = array.reshape(-1).view(np.uint8)
    found: npt.NDArray[Any] = whole[:count].view(array.dtype).reshape(shape)
    return found


def _capacity_of(array: npt.NDArray[Any]) -> Capacity | None:
    """Return the capacity that an array lies at the start of, if there is any."""
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, Capacity) else None


def longer_pool(nodes: npt.NDArray[Any], meta: Ints, groups: int) -> npt.NDArray[Any]:
    """Return the pool of a quadtree itself if this many groups can be allocated, else a longer one."""
    needed = int(meta[GROUP_END]) + _GROUP * max(0, groups - int(meta[GROUP_FREE_COUNT]))
    return longer(nodes, needed, _GROUP)


def reserve() -> None:
    """Reserve capacity for large arrays from now on, if there is any (`affordable_bytes`)."""
    Room.reserved = affordable_bytes()


@contextmanager
def reserved() -> Iterator[None]:
    """Reserve capacity for large arrays within the context."""
    with rooms_of(_anonymous):
        yield


@contextmanager
def rooms_of(make: MakeRoom) -> Iterator[None]:
    """Let `make` supply the memory of large arrays within the context."""
    before = Room.reserved, Room.make
    Room.reserved, Room.make = affordable_bytes(), make
    try:
        yield
    finally:
        Room.reserved, Room.make = before


def affordable_bytes() -> int:
    """Return half of the machine's memory, or 0 where address space is limited or accounted."""
    try:
        is_counted = _OVERCOMMIT.read_text().strip() == _STRICT
    except OSError:
        return 0
    import resource  # noqa: PLC0415 - not everywhere

    is_scarce = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    if is_counted or is_scarce:
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _zeros(count: int) -> npt.NDArray[np.uint8]:
    """Return zero bytes, with capacity after them if they are many and capacity is reserved."""
    if _LARGE_BYTES <= count <= Room.reserved:
        try:
            capacity = Room.make(Room.reserved)
        except OSError:  # the process may have no more address space
            return np.zeros(count, dtype=np.uint8)
        capacity.occupy(0, count)
        return np.ndarray(Room.reserved, np.uint8, capacity)
    return np.zeros(count, dtype=np.uint8)
