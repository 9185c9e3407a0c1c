"""Coordinates in steps of 30 bits each, so that one subtraction compares two of them.

The frame, a square, is 2 ** 30 steps wide. Points beyond it are in the outermost steps. Steps never
decrease as coordinates grow, so boxes that intersect also intersect in steps. The reverse is verified.

A *span* is the extent of a box along an axis, in one number: the first step in the lower 31 bits, the
last step, counted from the other end, in the upper ones. So both grow as a box shrinks. The 31st bit of
each half is 0 in a span. In a *window*, which is compared with spans, it is 1, and the difference keeps
it iff that half of the window is not less. A window has the halves swapped: the last step of the object
below, its first one above.

Operations: O(1).
"""

from __future__ import annotations

from index.batches import Floats
from safe_region.jit import leaf

STEP_MAX = (1 << 30) - 1
_HALF_BITS = 31
GUARDS = (1 << 30) | (1 << 61)
"""The bits that show whether a span and a window intersect."""


@leaf
def step_of(x_m: float, start_m: float, per_m: float) -> int:
    """Return the step that contains a coordinate."""
    return int(min(max((x_m - start_m) * per_m, 0.0), float(STEP_MAX)))


@leaf
def column_step(frame: Floats, x_m: float) -> int:
    """Return the step that contains a coordinate along the first axis."""
    return step_of(x_m, frame[0], frame[2])


@leaf
def row_step(frame: Floats, y_m: float) -> int:
    """Return the step that contains a coordinate along the second axis."""
    return step_of(y_m, frame[1], frame[2])


@leaf
def span_of(first: int, last: int) -> int:
    """Return the span of two steps."""
    return first | ((STEP_MAX - last) << _HALF_BITS)


@leaf
def window_of(first: int, last: int) -> int:
    """Return the window for comparison with the spans that intersect these steps."""
    return last | ((STEP_MAX - first) << _HALF_BITS) | GUARDS


@leaf
def inner_window(window: int) -> int:
    """Return the window for comparison with the spans that extend beyond a window at both ends.

    A box that does so by a whole step does so exactly.
    """
    return window - (1 | (1 << _HALF_BITS))


@leaf
def first_of(span: int) -> int:
    """Return the first step of a span."""
    return int(span) & STEP_MAX


@leaf
def last_of(span: int) -> int:
    """Return the last step of a span."""
    return STEP_MAX - (int(span) >> _HALF_BITS)
