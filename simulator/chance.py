"""Stateless random numbers: each is a hash of (seed, table, column, row id).

A row is therefore the same regardless of the task, the order, and the number of partitions. Numbers come
in two forms that do not agree with each other: numpy arrays (splitmix64) and Spark columns (xxhash64). A
column of a table uses one of them.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column
from pyspark.sql import functions as F

_ULP = 2.0**-53
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def stream_key(seed: int, table: str, column: str) -> int:
    """Return 64 bits that identify one column of one table under one seed."""
    digest = hashlib.blake2b(f"{seed}/{table}/{column}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def uniforms(seed: int, table: str, column: str, *ids: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1) per row, given the parts of its id (broadcast together)."""
    state = np.array(stream_key(seed, table, column), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in ids:
            state = _mixed(state ^ (np.asarray(part).astype(np.uint64) * _GOLDEN + _GOLDEN))
    found: npt.NDArray[np.float64] = (state >> np.uint64(11)).astype(np.float64) * _ULP
    return found


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Finalise as splitmix64 does: every input bit flips every output bit with probability one half."""
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


def generator(seed: int, table: str, column: str, row: int = 0) -> np.random.Generator:
    """Return a separate counter-based generator for one row that needs many numbers."""
    key = np.array([stream_key(seed, table, column), row], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def uniform(seed: int, table: str, column: str, *ids: Column) -> Column:
    """Return a Spark column of numbers in [0, 1)."""
    key = stream_key(seed, table, column) - 2**63
    return F.shiftrightunsigned(F.xxhash64(F.lit(key), *ids), 11) * F.lit(_ULP)
