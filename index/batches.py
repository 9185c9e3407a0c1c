"""Batches: the arguments and results of indexes, as arrays.

Every operation takes and returns a batch, so that kernels are entered once per batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
KeywordIds = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KeywordLists:
    """Keyword ids of many rows, row i at `ids[offsets[i] : offsets[i + 1]]`, strictly increasing."""

    offsets: Ints
    ids: KeywordIds

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | KeywordIds]) -> KeywordLists:
        """Pack rows; each must be strictly increasing already."""
        arrays = [np.asarray(row, dtype=np.int32) for row in rows]
        offsets = _offsets(np.array([len(array) for array in arrays], dtype=np.int64))
        ids = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
        return cls(offsets, ids)

    def row(self, index: int) -> KeywordIds:
        """Return the keyword ids of one row."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Boxes:
    """Closed rectangles along the axes, in plane metres: x1_m <= x2_m and y1_m <= y2_m, all finite."""

    x1_m: Floats
    y1_m: Floats
    x2_m: Floats
    y2_m: Floats

    def __len__(self) -> int:
        return len(self.x1_m)

    def part(self, rows: npt.NDArray[Any]) -> Boxes:
        """Return the selected rows."""
        return Boxes(self.x1_m[rows], self.y1_m[rows], self.x2_m[rows], self.y2_m[rows])

    def reach_m(self, x_m: Floats, y_m: Floats) -> Floats:
        """Return the farthest reach beyond points in the boxes: west, south, east, north.

        It is rounded up, but 0 where all boxes end at their points.
        """
        sides = (x_m - self.x1_m, y_m - self.y1_m, self.x2_m - x_m, self.y2_m - y_m)
        reach_m = np.array([side.max(initial=0.0) for side in sides])
        found: Floats = np.where(reach_m > 0.0, np.nextafter(reach_m, np.inf), 0.0)
        return found


@dataclass(frozen=True, slots=True)
class ObjectBatch:
    """Objects: ids, plane positions in metres, keywords.

    The position of an object with an area is a point inside the area, and the object has a bounding box.
    `boxes` is None if all objects are points. `norm2` is the sum of the squared weights of an object's
    keywords, for `Similarity.TFIDF`; None if no query of TFIDF will follow.
    """

    ids: Ints
    x_m: Floats
    y_m: Floats
    keywords: KeywordLists
    boxes: Boxes | None = None
    norm2: Floats | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def norms(self) -> Floats:
        """Return `norm2`, or the numbers of keywords if it is None. O(objects)."""
        return np.diff(self.keywords.offsets).astype(np.float64) if self.norm2 is None else self.norm2

    def extents(self) -> Boxes:
        """Return the bounding boxes of all objects; that of a point is the point. O(1)."""
        return self.boxes or Boxes(self.x_m, self.y_m, self.x_m, self.y_m)


@dataclass(frozen=True, slots=True)
class ReachBatch:
    """Positions and reaches of subscriptions: the part that `move` changes.

    An anchored subscription is a point, its anchor, with `radius_m` 0. A subscription whose device may be
    anywhere in a region is a disc that contains the region. `reach_m` may be infinite: then every object
    that shares a keyword matches.
    """

    ids: Ints
    x_m: Floats
    y_m: Floats
    radius_m: Floats
    reach_m: Floats
    reach_id: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, rows: npt.NDArray[np.bool_]) -> ReachBatch:
        """Return the selected rows."""
        return ReachBatch(
            self.ids[rows],
            self.x_m[rows],
            self.y_m[rows],
            self.radius_m[rows],
            self.reach_m[rows],
            self.reach_id[rows],
        )


@dataclass(frozen=True, slots=True)
class InterestBatch:
    """Queries of top-k subscriptions: keywords, similarity, and metres per text distance.

    Each has at least one keyword. `squares` has the squared weight of each of `keywords.ids`, for
    `Similarity.TFIDF`. In a batch for a subscription index either all interests are of TFIDF, or none is;
    then `squares` is None.
    """

    weight_m: Floats
    similarity: npt.NDArray[np.int8]
    keywords: KeywordLists
    squares: Floats | None = None

    def __len__(self) -> int:
        return len(self.weight_m)

    def all_squares(self) -> Floats:
        """Return `squares`, or ones if it is None. O(keywords)."""
        return np.ones(len(self.keywords.ids)) if self.squares is None else self.squares

    def norms(self) -> Floats:
        """Return the sum of the squared weights of each interest's keywords. O(keywords)."""
        if not len(self):
            return np.empty(0)
        norms: Floats = np.add.reduceat(self.all_squares(), self.keywords.offsets[:-1])
        return norms


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of each row of a query, those of row i at `ids[offsets[i] : offsets[i + 1]]`."""

    offsets: Ints
    ids: Ints

    @classmethod
    def of(cls, counts: Ints, ids: Ints) -> Matches:
        """Return matches from the number of matches of each row and the ids of all rows in order."""
        return cls(_offsets(counts), ids)

    def row(self, index: int) -> Ints:
        """Return the ids that match row `index`, each once, in no particular order."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]


class Moves(NamedTuple):
    """The matches of moved clauses that start and end: object ids, each once."""

    entered: Matches
    left: Matches


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best objects of each subscription, best first, row i at `offsets[i] : offsets[i + 1]`."""

    offsets: Ints
    ids: Ints
    length_m: Floats
    r_m: Floats

    def part(self, rows: npt.NDArray[np.bool_]) -> Ranking:
        """Return the selected rows."""
        counts = np.diff(self.offsets)
        kept = np.repeat(rows, counts)
        return Ranking(_offsets(counts[rows]), self.ids[kept], self.length_m[kept], self.r_m[kept])

    @classmethod
    def join(cls, rankings: Sequence[Ranking]) -> Ranking:
        """Return the rows of several rankings, at least one, in order."""
        counts = np.concatenate([np.diff(ranking.offsets) for ranking in rankings])
        columns = ("ids", "length_m", "r_m")
        joined = (np.concatenate([getattr(ranking, name) for ranking in rankings]) for name in columns)
        return cls(_offsets(counts), *joined)

    def replaced(self, rows: npt.NDArray[np.bool_], other: Ranking) -> Ranking:
        """Return all rows, with the selected ones replaced by the rows of another ranking, in order."""
        counts = np.diff(self.offsets)
        kept = np.repeat(~rows, counts)
        counts[rows] = np.diff(other.offsets)
        is_other = np.repeat(rows, counts)
        found = Ranking(
            _offsets(counts),
            np.empty(len(is_other), dtype=np.int64),
            np.empty(len(is_other)),
            np.empty(len(is_other)),
        )
        for name in ("ids", "length_m", "r_m"):
            column = getattr(found, name)
            column[~is_other] = getattr(self, name)[kept]
            column[is_other] = getattr(other, name)
        return found


def all_first_ids(first_id: Ints | None, count: int) -> Ints:
    """Return `first_id`, or ids that exclude nothing if it is None."""
    return np.full(count, np.iinfo(np.int64).min) if first_id is None else first_id


def _offsets(counts: Ints) -> Ints:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
