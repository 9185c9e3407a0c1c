"""An open-addressing hash of int64 keys: linear probing, removal by shifting back.

A table is two arrays of one power-of-two length, `keys` and `values`; `NO_KEY` marks a free cell. Callers
keep the load at or below `LOAD_MAX`. Look-up, insert and remove O(1) expected.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import kernel, leaf

Values = npt.NDArray[np.int32]

NO_KEY = np.iinfo(np.int64).min
"""Never an id."""

NO_VALUE = -1
"""The result of a look-up of an absent key."""

LOAD_MAX = 0.6
"""The load beyond which probe sequences get long."""

_LOW_BITS = 0x7FFFFFFF
_FACTOR_LOW = 0x9E3779B1
_FACTOR_HIGH = 0x85EBCA6B


@leaf
def home_cell(key: int, mask: int) -> int:
    """Return the home cell of a key.

    The products stay below 2**63, so that they are the same without the JIT.
    """
    mixed = ((key & _LOW_BITS) * _FACTOR_LOW) ^ (((key >> 31) & _LOW_BITS) * _FACTOR_HIGH)
    return ((mixed >> 32) ^ mixed) & mask


@leaf
def find_cell(keys: Ints, key: int) -> int:
    """Return the cell of a key, or the free cell for its insertion."""
    mask = keys.shape[0] - 1
    cell = home_cell(key, mask)
    while keys[cell] != NO_KEY and keys[cell] != key:
        cell = (cell + 1) & mask
    return cell


@leaf
def find(keys: Ints, values: Values, key: int) -> int:
    """Return the value of a key, or NO_VALUE."""
    cell = find_cell(keys, key)
    if keys[cell] == NO_KEY:
        return NO_VALUE
    return int(values[cell])


@leaf
def put(keys: Ints, values: Values, key: int, value: int) -> bool:
    """Set the value of a key; return whether the key is new."""
    cell = find_cell(keys, key)
    is_new = keys[cell] == NO_KEY
    keys[cell] = key
    values[cell] = value
    return bool(is_new)


@leaf
def pop(keys: Ints, values: Values, key: int) -> int:
    """Remove a key; return its value, or NO_VALUE if it is absent."""
    mask = keys.shape[0] - 1
    hole = find_cell(keys, key)
    if keys[hole] == NO_KEY:
        return NO_VALUE
    value = int(values[hole])
    cell = (hole + 1) & mask
    while keys[cell] != NO_KEY:
        # A key may move back into the hole if its home is not between the two.
        if ((cell - home_cell(keys[cell], mask)) & mask) >= ((cell - hole) & mask):
            keys[hole] = keys[cell]
            values[hole] = values[cell]
            hole = cell
        cell = (cell + 1) & mask
    keys[hole] = NO_KEY
    return value


@kernel
def find_all(keys: Ints, values: Values, wanted: Ints, found: Values) -> int:
    """Write the value of each requested key; return the first row that is absent, or -1."""
    absent = -1
    for i in range(wanted.shape[0]):
        found[i] = find(keys, values, wanted[i])
        if found[i] == NO_VALUE and absent < 0:
            absent = i
    return absent


@kernel
def put_all(keys: Ints, values: Values, new_keys: Ints, new_values: Values) -> int:
    """Add keys; return the first row whose key is already present, with all undone, or -1."""
    for i in range(new_keys.shape[0]):
        cell = find_cell(keys, new_keys[i])
        if keys[cell] != NO_KEY:
            for j in range(i):
                pop(keys, values, new_keys[j])
            return i
        keys[cell] = new_keys[i]
        values[cell] = new_values[i]
    return -1


@kernel
def pop_all(keys: Ints, values: Values, gone: Ints, found: Values) -> int:
    """Remove keys and write their values; return the first row that is absent, with all undone, or -1."""
    for i in range(gone.shape[0]):
        found[i] = pop(keys, values, gone[i])
        if found[i] == NO_VALUE:
            for j in range(i):
                put(keys, values, gone[j], found[j])
            return i
    return -1


@kernel
def copy_all(keys: Ints, values: Values, new_keys: Ints, new_values: Values) -> None:
    """Copy all keys of a table into another, empty one."""
    for cell in range(keys.shape[0]):
        if keys[cell] != NO_KEY:
            put(new_keys, new_values, keys[cell], values[cell])
