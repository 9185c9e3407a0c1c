"""Validation and columns of clauses, common to all clause indexes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Boxes, Floats, Ints, KeywordLists

CLAUSE_FIELDS = [
    ("id", np.int64),
    ("x1_m", np.float64),  # the closed box
    ("y1_m", np.float64),
    ("x2_m", np.float64),
    ("y2_m", np.float64),
    ("keyword_start", np.int64),  # first required keyword id in the pool
    ("keyword_count", np.int32),
]
"""The least set of fields of a table of clauses."""


def validate_clauses(ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
    """Verify clauses before insertion. O(clauses).

    Raises
    ------
    ValueError
        If a clause requires no keyword, or a box is not finite or is inverted.
    """
    bare = np.flatnonzero(np.diff(required.offsets) == 0)
    if len(bare):
        raise ValueError(f"clause {ids[bare[0]]} requires no keyword, must require at least one")
    validate_boxes(ids, boxes)


def validate_boxes(ids: Ints, boxes: Boxes) -> None:
    """Verify the boxes of clauses. O(clauses).

    Raises
    ------
    ValueError
        If a box is not finite or is inverted.
    """
    is_right: npt.NDArray[np.bool_] = (boxes.x1_m <= boxes.x2_m) & (boxes.y1_m <= boxes.y2_m)
    for one in columns_of(boxes).values():
        is_right &= np.isfinite(one)
    wrong = np.flatnonzero(~is_right)
    if len(wrong):
        i = int(wrong[0])
        box = tuple(float(one[i]) for one in columns_of(boxes).values())
        raise ValueError(f"the box of clause {ids[i]} is {box}, must be finite and x1 <= x2, y1 <= y2")


def columns_of(boxes: Boxes) -> dict[str, Floats]:
    """Return the columns of boxes by the names of the fields in tables."""
    return {"x1_m": boxes.x1_m, "y1_m": boxes.y1_m, "x2_m": boxes.x2_m, "y2_m": boxes.y2_m}
