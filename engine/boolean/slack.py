"""Choose the slack of a moving range, and the distance of its anchor ahead, at the least cost.

A device with a circle of radius R that holds the matches within L = R + s of its anchor is silent while
it is within s of the anchor. A larger s means fewer reports, and more objects sent: those that arrive
within L, and those that the circle newly covers as it moves. With a speed of v, a density of matches rho,
and the expected distance D of the device until it reports, a second costs

    report * v / D  +  object * (mu * rho * pi L^2 + v * rho * new(L, D) / D)  +  held * rho * pi L^2

where mu is the rate of arrivals per existing object, and new(L, D) is the part of a circle of radius L
that one of the same size at distance D does not cover. The density is that of the matches within L at the
last evaluation, plus one: so where nothing was found, later slacks reach farther.

A rectangle costs the same as a circle of its area.

The anchor may lie ahead, h < s metres in the direction of the heading: D grows with h if the device
continues straight on, and shrinks if it turns. That is the trade-off of `engine.top_k.choice_kernels`,
for regions that are circles.

Operations: O(1) a subscription.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.boolean.layout import Rows, sizes
from engine.contracts import Bools
from engine.options import CostModel
from index.batches import Floats

_SLACKS: Floats = 2.0 ** (np.arange(19) / 2.0 - 4.0)
"""Slacks that are tried, in radii: 1/16 to 32."""
_AHEAD: Floats = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""Fractions of the longest shift that are tried."""
_FIRST = 1.0
"""The slack, in radii, of a subscription of which nothing is known yet."""
_KEEPS_ON = 0.7
"""Weight of continuing straight on, against any other direction, in the expected distance."""
_BEYOND = 1.5
"""The mean distance of a device until it leaves, relative to the certain distance."""
_SPEED_MIN_MPS = 0.5
_MANY_SHARE = 0.25
"""A fraction of the most matches that a device gets: with more expected, no anchor lies ahead."""
_AIM_MIN_M = 1.0
"""With less slack no anchor lies ahead: rounding would matter."""


class Choice(NamedTuple):
    """Slacks, and distances of anchors ahead."""

    slack_m: Floats
    ahead_m: Floats


def choose(
    rows: Rows,
    speed_mps: Floats,
    may_aim: Bools,
    arrivals_per_object_s: Floats,
    costs: CostModel,
    matches_max: int,
) -> Choice:
    """Choose slacks and anchors for moving subscriptions.

    Parameters
    ----------
    rows
        The rows after the last evaluation: `match_count` within the range and the slack. Subscriptions
        that were never evaluated have a slack of 0 and no matches.
    speed_mps
        Speeds of their devices.
    may_aim
        Whether the exact position and the heading of each device are known.
    arrivals_per_object_s
        The rate in the window of each.
    costs
        The prices by which slack and anchor are chosen.
    matches_max
        The most objects that a device may get.
    """
    radius_m = sizes(rows)
    known_m = radius_m + rows["slack_m"]
    density = (rows["match_count"] + 1.0) / (np.pi * known_m * known_m)
    speed = np.maximum(_SPEED_MIN_MPS, speed_mps)
    # Axes: subscription, slack, share of the longest shift.
    slack_m = (radius_m[:, None] * _SLACKS)[:, :, None]
    ahead_m = slack_m * (costs.ahead * _AHEAD)
    reach_m = radius_m[:, None, None] + slack_m
    distance_m = _distance(slack_m, ahead_m)
    held = density[:, None, None] * np.pi * reach_m * reach_m
    swept = density[:, None, None] * _uncovered(reach_m, distance_m) / distance_m
    cost = speed[:, None, None] * (costs.report / distance_m + costs.object * swept)
    cost = cost + held * (costs.object * arrivals_per_object_s[:, None, None] + costs.held)
    is_shift = np.broadcast_to(_AHEAD > 0.0, cost.shape)
    may_shift = may_aim[:, None, None] & (held < _MANY_SHARE * matches_max) & (slack_m >= _AIM_MIN_M)
    cost = np.where(is_shift & ~may_shift, np.inf, cost)
    best = cost.reshape(len(rows), -1).argmin(axis=1)
    slack, share = np.divmod(best, len(_AHEAD))
    chosen_m = radius_m * _SLACKS[slack]
    is_new = rows["slack_m"] == 0.0
    is_new &= rows["too_many"] == 0
    return Choice(
        np.where(is_new, radius_m * _FIRST, chosen_m),
        np.where(is_new, 0.0, chosen_m * costs.ahead * _AHEAD[share]),
    )


def _distance(slack_m: Floats, ahead_m: Floats) -> Floats:
    """Return the expected distance of a device until it leaves the circle of its slack."""
    keeping_on_m = ahead_m + _BEYOND * slack_m
    turning_m = _BEYOND * (slack_m - ahead_m)
    shifted_m = _KEEPS_ON * keeping_on_m + (1.0 - _KEEPS_ON) * turning_m
    found: Floats = np.where(ahead_m > 0.0, shifted_m, _BEYOND * slack_m)
    return found


def _uncovered(radius_m: Floats, apart_m: Floats) -> Floats:
    """Return the part of a circle's area that an equal circle at a distance does not cover."""
    share = np.minimum(1.0, apart_m / (2.0 * radius_m))
    covered = np.arccos(share) - share * np.sqrt(1.0 - share * share)
    found: npt.NDArray[np.float64] = radius_m * radius_m * (np.pi - 2.0 * covered)
    return found
