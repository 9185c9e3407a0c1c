"""Scores and lengths.

    score(s, o)  = alpha * dist(p, o) / maxdist + (1 - alpha) * textdist(s, o)      smaller is better
    length(s, o) = score * maxdist / alpha = dist(p, o) + r,   r = weight * textdist,
                   weight = (1 - alpha) / alpha * maxdist

All reasoning is in lengths; a score is for display. The functions below are plain Python in the
subset that numba compiles: `scoring_kernels` compiles *these* functions, so that a device, the
engine and the kernels round alike. Objects that share no keyword never qualify, whatever the score.

Source: lamps.txt section 2.1 (score), 2.2 (an object as a circle of radius r).
"""

from __future__ import annotations

import math
from enum import IntEnum


class Similarity(IntEnum):
    """Text similarity of two keyword sets. The numbers equal those on the wire."""

    JACCARD = 1
    DICE = 2
    COSINE = 3
    """Set cosine: common / sqrt(|s| |o|)."""


REACH_SLACK = 1e-12
"""Relative safety margin of every test of a length against a reach, on devices and in kernels alike: four
orders above the rounding error of a sum of lengths. See `safe_region.anchored`."""

_DICE = int(Similarity.DICE)
_COSINE = int(Similarity.COSINE)


def text_distance(similarity: int, common: int, left: int, right: int) -> float:
    """One minus the similarity of two sets, in [0, 1].

    Parameters
    ----------
    similarity
        A `Similarity` as an integer.
    common
        How many keywords the two sets share.
    left, right
        How many keywords each set has; both at least 1.
    """
    if similarity == _DICE:
        return 1.0 - 2.0 * common / (left + right)
    if similarity == _COSINE:
        return 1.0 - common / math.sqrt(float(left * right))
    return 1.0 - common / (left + right - common)


def text_weight(alpha: float, maxdist_m: float) -> float:
    """Metres that a text distance of 1 counts for: (1 - alpha) / alpha * maxdist."""
    return (1.0 - alpha) / alpha * maxdist_m


def length(dx_m: float, dy_m: float, r_m: float) -> float:
    """Length of an object at offset (dx, dy) with text share r. The one expression everywhere."""
    return math.sqrt(dx_m * dx_m + dy_m * dy_m) + r_m


def score_of(length_m: float, alpha: float, maxdist_m: float) -> float:
    """Score that belongs to a length, for display."""
    return length_m * alpha / maxdist_m
