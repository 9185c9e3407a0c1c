"""Coordinates in steps: 30 bits for each, so that one subtraction compares two.

The frame, a square, is 2 ** 30 steps wide. What is beyond is in the outermost steps. Steps never decrease
as coordinates grow, so boxes that meet, meet in steps too. The reverse is verified.

A *stretch* is where a box begins and ends along an axis, in one number: the first step in the lower 31
bits, in the upper ones the last, counted from the other end. So both grow as a box shrinks. The 31st bit
of each half is 0 in a stretch. In what it is compared with, a *window*, it is 1, and stays so in the
difference just if that half of the window is not less. A window has the halves changed over: the last
step of the object below, its first one above.

Operations: O(1).
"""

from __future__ import annotations

from index.batches import Floats
from safe_region.jit import leaf

STEP_MAX = (1 << 30) - 1
_HALF_BITS = 31
GUARDS = (1 << 30) | (1 << 61)
"""The bits that tell whether a stretch and a window meet."""


@leaf
def step_of(x_m: float, start_m: float, per_m: float) -> int:
    """Return the step that a coordinate is in."""
    return int(min(max((x_m - start_m) * per_m, 0.0), float(STEP_MAX)))


@leaf
def column_step(frame: Floats, x_m: float) -> int:
    """Return the step that a coordinate is in along the first axis."""
    return step_of(x_m, frame[0], frame[2])


@leaf
def row_step(frame: Floats, y_m: float) -> int:
    """Return the step that a coordinate is in along the second axis."""
    return step_of(y_m, frame[1], frame[2])


@leaf
def span_of(first: int, last: int) -> int:
    """Return a stretch."""
    return first | ((STEP_MAX - last) << _HALF_BITS)


@leaf
def window_of(first: int, last: int) -> int:
    """Return what stretches are compared with that meet these steps."""
    return last | ((STEP_MAX - first) << _HALF_BITS) | GUARDS


@leaf
def inner_window(window: int) -> int:
    """Return what stretches are compared with that go beyond a window at both ends.

    A box that does so by a whole step does so exactly.
    """
    return window - (1 | (1 << _HALF_BITS))


@leaf
def first_of(span: int) -> int:
    """Return the first step of a stretch."""
    return int(span) & STEP_MAX


@leaf
def last_of(span: int) -> int:
    """Return the last step of a stretch."""
    return STEP_MAX - (int(span) >> _HALF_BITS)
