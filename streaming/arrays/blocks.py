"""Blocks: rows of a feed as arrays, and as bytes, the form in which they are sent and stored.

A row of Spark carries a block of many rows of a feed. As bytes, a block is one row of an Arrow stream
with a list in each column, so that reading copies nothing.

Keywords are sent as digests of 128 bits, so a block does not need the words. Two different words with the
same digest would be an error that `Numbers` reports; the probability is below 1e-25 for a million words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from index.batches import Floats, Ints, KeywordIds, KeywordLists

Bytes = npt.NDArray[np.int8]
Marks = npt.NDArray[np.int16]

FOR_EVER_MS = 1 << 62
"""The expiry of a message without a lifetime."""

EARLY = 2
"""Marks a retraction in a log that arrived before its message."""

_DIGEST_BYTES = 16


class DigestError(Exception):
    """The digests of two words have equal first halves; the only remedy is to choose other digests."""


def digests(words: Sequence[str]) -> Ints:
    """Return a pair of int64 for each word. O(characters)."""
    found = b"".join(hashlib.blake2b(word.encode(), digest_size=_DIGEST_BYTES).digest() for word in words)
    return np.frombuffer(found, dtype="<i8").reshape(-1, 2)


def pack(columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Write arrays as bytes."""
    arrays = [
        pa.LargeListArray.from_arrays(pa.array([0, len(column)], pa.int64()), pa.array(column))
        for column in columns.values()
    ]
    batch = pa.record_batch(arrays, names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpack(data: bytes) -> dict[str, Any]:
    """Return the arrays, which share the memory of the bytes."""
    (batch,) = pa.ipc.open_stream(pa.BufferReader(data))
    return {
        name: column.values.to_numpy() for name, column in zip(batch.schema.names, batch, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Block:
    """Arrays with a value for each row, with keyword lists and the digests of the keywords."""

    offsets: Ints
    """Keywords of row i are `words[offsets[i] : offsets[i + 1]]`."""
    words: KeywordIds
    """Rows of the digests; in no order."""
    high: Ints
    low: Ints
    """Digests of words."""
    square: Floats
    """The squared weight of each word; 1 without weights."""

    PARALLEL: ClassVar[tuple[str, ...]] = ("words",)
    """Columns with a value for each keyword of a list."""
    SHARED: ClassVar[tuple[str, ...]] = ("offsets", "high", "low", "square")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pack(self) -> bytes:
        """Write the block as bytes."""
        return pack({one.name: getattr(self, one.name) for one in fields(self)})

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Read a block; its arrays share the memory of the bytes."""
        return cls(**unpack(data))

    @classmethod
    def join(cls, blocks: Sequence[Self]) -> Self:
        """Return the concatenated rows of blocks; without any, a block that has no rows."""
        if not blocks:
            return cls._empty()
        if len(blocks) == 1:
            return blocks[0]
        columns = {
            one.name: np.concatenate([getattr(block, one.name) for block in blocks])
            for one in fields(cls)
        }
        counts = np.concatenate([np.diff(block.offsets) for block in blocks])
        starts = np.cumsum([0, *(len(block.high) for block in blocks[:-1])])
        words = [block.words + start for block, start in zip(blocks, starts, strict=True)]
        columns["offsets"] = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        columns["words"] = np.concatenate(words).astype(np.int32)
        return cls(**columns)

    @classmethod
    def _empty(cls) -> Self:
        """Return a block without rows, with the types of the columns."""
        types = get_type_hints(cls)
        columns = {}
        for one in fields(cls):
            _, dtype = get_args(types[one.name])  # those of an array: its shape, and its dtype
            columns[one.name] = np.empty(0, dtype=get_args(dtype)[0])
        columns["offsets"] = np.zeros(1, dtype=np.int64)
        return cls(**columns)

    def part(self, rows: Ints) -> Self:
        """Return some rows, in this order; digests stay unchanged."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in columns.keys() - {*self.PARALLEL, *self.SHARED}:
            columns[name] = columns[name][rows]
        columns["offsets"], places = self.places(rows)
        for name in self.PARALLEL:
            columns[name] = columns[name][places]
        return type(self)(**columns)

    def lean(self) -> Self:
        """Return the same rows with only the digests that they need, each once.

        `part` keeps the digests of the whole block.

        Raises
        ------
        DigestError
            If two digests have equal first halves.
        """
        used, words = np.unique(self.words, return_inverse=True)
        _, first, once = np.unique(self.high[used], return_index=True, return_inverse=True)
        if not np.array_equal(self.low[used], self.low[used][first][once]):
            raise DigestError("the digests of two keywords have the same prefix")
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        columns |= {name: columns[name][used[first]] for name in ("high", "low", "square")}
        columns["words"] = once[words].astype(np.int32)
        return type(self)(**columns)

    def places(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the offsets of the keyword lists of some rows, and the places of their keywords."""
        counts = np.diff(self.offsets)[rows]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        return offsets, np.repeat(self.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])

    def lists(self, numbers: KeywordIds, rows: Ints) -> KeywordLists:
        """Return the keyword lists of some rows; `numbers` has a number for each of `words`."""
        offsets, places = self.places(rows)
        return KeywordLists(offsets, numbers[places])

    def sorted_lists(self, numbers: KeywordIds, rows: Ints) -> KeywordLists:
        """Return the same lists, each increasing."""
        lists = self.lists(numbers, rows)
        owners = np.repeat(np.arange(len(rows)), np.diff(lists.offsets))
        return KeywordLists(lists.offsets, lists.ids[np.lexsort((lists.ids, owners))])


@dataclass(frozen=True, slots=True)
class Messages(Block):
    """Publications and retractions."""

    object_id: Ints
    time_ms: Ints
    expiry_ms: Ints
    """`FOR_EVER_MS` without a lifetime."""
    x_m: Floats
    y_m: Floats
    is_retraction: Bytes
    """`EARLY` for a logged retraction that arrived before its message."""


@dataclass(frozen=True, slots=True)
class Subscriptions(Block):
    """Starts and ends of subscriptions.

    The keywords of boolean subscriptions are those of their clauses: `marks` has for each keyword the
    number of its clause, and whether it is excluded.
    """

    PARALLEL: ClassVar[tuple[str, ...]] = ("words", "marks")

    marks: Marks
    """Twice the number of the clause, plus one if excluded. 0 for top-k subscriptions."""
    subscription_id: Ints
    time_ms: Ints
    x_m: Floats
    y_m: Floats
    weight_m: Floats
    """The metres that a text distance of 1 is worth."""
    k: Ints
    similarity: Bytes
    is_end: Bytes
    is_boolean: Bytes
    radius_m: Floats
    """The radius of a circular range; 0 for others. x_m and y_m are the centre of a range."""
    x1_m: Floats
    """The box of a rectangular range."""
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats
