"""Compute scores and lengths.

    score(s, o)  = alpha * dist(p, o) / scale + (1 - alpha) * textdist(s, o)        smaller is better
    length(s, o) = score * scale / alpha = dist(p, o) + r,   r = weight * textdist,
                   weight = (1 - alpha) / alpha * scale

The scale is the subscription's own (`distance_scale_m`), or the diagonal of the service area, which Lamps
calls maxdist. A distance of one scale counts for alpha, no common keyword for 1 - alpha.

All proofs and tests are in lengths; a score is for display. The functions below are plain Python in the
subset that numba compiles. `kernels` compiles *these* functions, so that a device, the engine and
the kernels round alike. Objects that share no keyword with the subscription never qualify, whatever the
score.

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
    """Cosine of the two sets: `common / sqrt(|s| |o|)`."""
    TFIDF = 4
    """Cosine of the two sets with a weight for each keyword, by how rare it is: tf-idf with tf = 1."""


SET_SIMILARITIES = (Similarity.JACCARD, Similarity.DICE, Similarity.COSINE)
"""The similarities that give all keywords the same weight."""

WEIGHT_STEP = 2.0**-16
"""Weights of keywords are multiples of this step, and at least this step."""
WEIGHT_MAX = 32.0
"""Largest weight of a keyword. Squares of weights are multiples of 2**-32 up to 2**10: sums of some
thousand of them are exact in float64, in whatever order they are added."""


REACH_SLACK = 1e-12
"""Relative safety margin of every test of a length against a reach, on devices and in kernels alike: four
orders of magnitude above the rounding error of a sum of lengths. See `safe_region.regions.anchored`."""

_DICE = int(Similarity.DICE)
_COSINE = int(Similarity.COSINE)


def text_distance(similarity: int, common: float, left: float, right: float) -> float:
    """Return one minus the similarity of two sets, in [0, 1].

    A keyword counts for the square of its weight. The weight is 1, except for TFIDF, which is the set
    cosine with other weights.

    Parameters
    ----------
    similarity
        A `Similarity` as an integer.
    common
        Sum of the squared weights of the keywords that the two sets share; except for TFIDF their number.
    left, right
        The same sum for each set; both above 0.
    """
    if similarity == _DICE:
        return 1.0 - 2.0 * common / (left + right)
    if similarity >= _COSINE:
        return 1.0 - common / math.sqrt(float(left * right))
    return 1.0 - common / (left + right - common)


def distance_scale(distance_scale_m: float | None, maxdist_m: float) -> float:
    """Return the scale of a subscription's distances, metres: its own, or the diagonal if it has none."""
    return distance_scale_m or maxdist_m


def text_weight(alpha: float, scale_m: float) -> float:
    """Return the length in metres of a text distance of 1: (1 - alpha) / alpha * scale."""
    return (1.0 - alpha) / alpha * scale_m


def length(dx_m: float, dy_m: float, r_m: float) -> float:
    """Return the length of an object at offset (dx, dy) with the constant part r, all in metres.

    This one expression is used everywhere.
    """
    return math.sqrt(dx_m * dx_m + dy_m * dy_m) + r_m


def score_of(length_m: float, alpha: float, scale_m: float) -> float:
    """Return the score that belongs to a length, for display."""
    return length_m * alpha / scale_m
