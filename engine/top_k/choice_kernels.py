"""Choose the anchor and the buffer size, which determine how often a device must report.

At the device's position p its best objects are known, more of them than it will hold. For a buffer of
m = k + b and an anchor a the region's size follows: from a the device can go at least (gamma - f_k(a)) /
2 in any direction, gamma being the reach. A larger m means fewer reports, and more objects sent: those
that arrive within reach, and those that the device approaches as it travels. So b is the number with the
least cost per second:

    report * (v / D(b) + m * nu / (b + 1))  +  object * (m * mu + v * 2 m / (pi R))  +  held * m

with v the device's speed, D its expected distance until it leaves, nu the departures per held object
(after b + 1 of them fewer than k are left), mu the arrivals, observed for this subscription and shrunk
towards the mean of all, and R the radius within which the m objects lie: a disc of m objects that moves
at v sweeps over this many.

The anchor may lie ahead, h metres in the direction of the heading, if (*) of
`safe_region.regions.anchored` holds at the device's position. This needs no further search: an object
that is not known has a length at a of at least the last known length at p less h, which bounds the reach.

This is the trade-off that skype.txt section 6.2 makes with its cost-based k-skyband: there for expiry
alone.
Cost: O(shares * m log m) a subscription.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.top_k.layout import BY_COST, Row, Rows
from index.batches import Floats, Ints
from index.tables.id_map_kernels import Values, find
from index.tables.selection_kernels import is_less
from safe_region.jit import kernel, leaf
from safe_region.scoring.formulas import REACH_SLACK
from safe_region.scoring.kernels import length

Slots = npt.NDArray[np.int32]

STRICT = 1.0 - REACH_SLACK
_NO_ID = 0
"""Less than every object's id: the reach is a bound, not an object."""

_AHEAD = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""Fractions of the longest shift that are tried."""
_KEEPS_ON = 0.7
"""Weight of continuing straight on, against any other direction, in the expected distance."""
_BEYOND = 1.5
"""The mean distance of a device until it leaves, relative to the certain radius."""
_SPEED_MIN_MPS = 0.5
_RADIUS_MIN_M = 1.0
_MS_PER_S = 1000.0


class Costs(NamedTuple):
    """The costs of the choice; see `engine.options.CostModel`."""

    report: float
    object: float
    held: float
    ahead: float
    speed_mps: float
    arrivals_per_held_s: Floats
    """By number of the window."""
    departures_per_held_s: Floats


class Known(NamedTuple):
    """Scratch for the known objects of one subscription, and for their order about some anchor."""

    x_m: Floats
    y_m: Floats
    r_m: Floats
    ids: Ints
    swept: Floats
    """Objects swept in a metre travelled, by number of held objects."""
    lengths: Floats
    order: Ints

    @classmethod
    def of(cls, count: int) -> Known:
        """Return scratch for `count` objects."""
        x_m, y_m, r_m, swept, lengths = (np.empty(count) for _ in range(5))
        ids, order = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        return cls(x_m, y_m, r_m, ids, swept, lengths, order)


class Chosen(NamedTuple):
    """Anchors, reaches and buffers of subscriptions, row i's objects at `offsets[i] : offsets[i + 1]`."""

    x_m: Floats
    y_m: Floats
    reach_m: Floats
    reach_id: Ints
    offsets: Ints
    ids: Ints
    r_m: Floats


class Option(NamedTuple):
    """One choice: its cost a second, the number of held objects, the reach."""

    cost: float
    held: int
    reach_m: float
    reach_id: int


@leaf
def _order_at(known: Known, count: int, x_m: float, y_m: float) -> None:
    """Sort known objects by (length at a place, id). They are nearly sorted, so by insertion."""
    for i in range(count):
        here = length(x_m - known.x_m[i], y_m - known.y_m[i], known.r_m[i])
        j = i
        while j > 0 and is_less(here, known.ids[i], known.lengths[j - 1], known.ids[known.order[j - 1]]):
            known.lengths[j] = known.lengths[j - 1]
            known.order[j] = known.order[j - 1]
            j -= 1
        known.lengths[j] = here
        known.order[j] = i


@leaf
def _learn(row: Row, now_ms: int, x_m: float, y_m: float, speed_mps: float, costs: Costs) -> float:
    """Record a device's motion and arrivals since its last anchor; return arrivals per held second."""
    if row["is_awake"]:
        passed_s = (now_ms - row["anchored_ms"]) / _MS_PER_S
        if passed_s > 0.0:
            row["held_s"] += passed_s * row["buffer_count"]
            if math.isnan(speed_mps):
                speed_mps = length(x_m - row["x_m"], y_m - row["y_m"], 0.0) / passed_s
    row["anchored_ms"] = now_ms
    if not math.isnan(speed_mps):
        before = row["speed_mps"]
        row["speed_mps"] = speed_mps if math.isnan(before) else (before + speed_mps) / 2.0
    expected = costs.arrivals_per_held_s[row["window"]]
    if expected > 0.0:
        rate = (1.0 + row["arrivals"]) / (1.0 / expected + row["held_s"])
    elif row["held_s"] > 0.0:
        rate = row["arrivals"] / row["held_s"]
    else:
        rate = 0.0
    row["arrivals"] /= 2.0
    row["held_s"] /= 2.0
    return float(rate)


@leaf
def _sweep(known: Known, count: int, x_m: float, y_m: float) -> None:
    """Fill `swept`: a disc of uniform density has a mean distance of two thirds of its radius."""
    total = 0.0
    for i in range(count):
        total += length(x_m - known.x_m[i], y_m - known.y_m[i], 0.0)
        held = i + 1
        radius = max(_RADIUS_MIN_M, 1.5 * total / held)
        known.swept[i] = 2.0 * held / (math.pi * radius)


@leaf
def _best_at(
    known: Known,
    count: int,
    k: int,
    ahead_m: float,
    here_m: float,
    bound_m: float,
    margin_m: float,
    speed_mps: float,
    arrivals: float,
    departures: float,
    costs: Costs,
) -> Option:
    """Choose the number of held objects for an anchor at a distance ahead; `known` is sorted about it.

    `here_m` is f_k at the device's position; `bound_m` is below every length at the anchor of unknown
    objects, infinite if all are known. The device may be up to `margin_m` from its reported position. The
    cost is infinite if no buffer allows this anchor.
    """
    best = Option(np.inf, 0, 0.0, 0)
    kth_m = known.lengths[k - 1]
    for held in range(k, count + 1):
        if held < count and known.lengths[held] < bound_m:
            reach_m, reach_id = known.lengths[held], known.ids[known.order[held]]
        else:
            reach_m, reach_id = bound_m, _NO_ID
        if known.lengths[held - 1] >= reach_m and reach_id == _NO_ID:
            break  # not all of these are below the bound
        cost = held * (costs.object * arrivals + costs.held)
        if not math.isinf(reach_m):
            about_m = (reach_m * STRICT - here_m - ahead_m) / 2.0
            if about_m <= margin_m:
                continue
            along_m = ahead_m + _BEYOND * (reach_m * STRICT - kth_m) / 2.0
            reached_m = _BEYOND * about_m
            if ahead_m > 0.0:
                reached_m = _KEEPS_ON * along_m + (1.0 - _KEEPS_ON) * reached_m
            cost += costs.report * held * departures / (held - k + 1)
            cost += speed_mps * (costs.report / reached_m + costs.object * known.swept[held - 1])
        if cost < best.cost:
            best = Option(cost, held, reach_m, reach_id)
        if math.isinf(reach_m):
            break
    return best


class Ranked(NamedTuple):
    """The known objects of each subscription, best first: row i at `offsets[i] : offsets[i + 1]`."""

    offsets: Ints
    ids: Ints
    length_m: Floats
    r_m: Floats


class Moving(NamedTuple):
    """Positions of devices and their motion; headings and speeds are NaN where unknown."""

    x_m: Floats
    y_m: Floats
    heading_rad: Floats
    speed_mps: Floats
    margin_m: Floats


@leaf
def _take_first(ranked: Ranked, chosen: Chosen, i: int, held: int, end: int) -> None:
    """Choose the best `held` objects, about the device itself; the next one is the reach."""
    first = ranked.offsets[i]
    is_all = first + held == ranked.offsets[i + 1]
    chosen.reach_m[i] = np.inf if is_all else ranked.length_m[first + held]
    chosen.reach_id[i] = _NO_ID if is_all else ranked.ids[first + held]
    for j in range(held):
        chosen.ids[end + j] = ranked.ids[first + j]
        chosen.r_m[end + j] = ranked.r_m[first + j]


@leaf
def _recall(
    objects: Rows, id_keys: Ints, id_values: Values, ranked: Ranked, first: int, count: int, known: Known
) -> None:
    """Fill `known`."""
    for j in range(count):
        item = objects[find(id_keys, id_values, ranked.ids[first + j])]
        known.x_m[j] = item["x_m"]
        known.y_m[j] = item["y_m"]
        known.r_m[j] = ranked.r_m[first + j]
        known.ids[j] = ranked.ids[first + j]


@leaf
def _take_cheapest(
    row: Row,
    i: int,
    moving: Moving,
    ranked: Ranked,
    last_m: float,
    arrivals: float,
    costs: Costs,
    known: Known,
    chosen: Chosen,
    end: int,
) -> int:
    """Choose the option of least cost for one subscription; return the number of held objects.

    `last_m` is the length of the last known object, infinite if all are known.
    """
    first = ranked.offsets[i]
    count = int(ranked.offsets[i + 1] - first)
    k = int(row["k"])
    x_m, y_m, heading = moving.x_m[i], moving.y_m[i], moving.heading_rad[i]
    speed = costs.speed_mps if math.isnan(row["speed_mps"]) else float(row["speed_mps"])
    here_m = ranked.length_m[first + k - 1]
    departures = costs.departures_per_held_s[row["window"]]
    longest = 0.0
    if not math.isinf(last_m) and not math.isnan(heading) and moving.margin_m[i] == 0.0:
        longest = costs.ahead * (last_m - here_m) / 2.0
    best = Option(np.inf, 0, 0.0, 0)
    for share in _AHEAD:
        if share > 0.0 and longest <= 0.0:
            break
        ax, ay, bound_m = x_m, y_m, last_m
        if share > 0.0:
            ax += share * longest * math.sin(heading)
            ay += share * longest * math.cos(heading)
        ahead_m = length(ax - x_m, ay - y_m, 0.0)
        if ahead_m > 0.0:
            bound_m = (last_m - ahead_m) * STRICT
        _order_at(known, count, ax, ay)
        option = _best_at(
            known, count, k, ahead_m, here_m, bound_m, moving.margin_m[i],
            max(_SPEED_MIN_MPS, speed), arrivals, departures, costs,
        )  # fmt: skip
        if option.cost < best.cost:
            best = option
            chosen.x_m[i] = ax
            chosen.y_m[i] = ay
            chosen.reach_m[i] = option.reach_m
            chosen.reach_id[i] = option.reach_id
            for j in range(option.held):
                chosen.ids[end + j] = known.ids[known.order[j]]
                chosen.r_m[end + j] = known.r_m[known.order[j]]
    if best.held == 0:
        # All are equally far: with any buffer, the device may be silent only at the anchor itself.
        _take_first(ranked, chosen, i, count - 1, end)
        return count - 1
    return best.held


@kernel
def choose(
    objects: Rows,
    id_keys: Ints,
    id_values: Values,
    rows: Rows,
    now_ms: int,
    moving: Moving,
    ranked: Ranked,
    costs: Costs,
    known: Known,
    chosen: Chosen,
) -> int:
    """Choose anchors, reaches and buffers; return the number of objects in all buffers together.

    `rows` are copies of the rows of subscriptions, which get the updates. For each subscription k + extra
    + 1 objects were requested. A subscription of fixed b holds all but the last, which is its reach; one
    by cost gets the option of least cost, and `extra` becomes its b.
    """
    end = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        k = int(row["k"])
        count = int(ranked.offsets[i + 1] - ranked.offsets[i])
        arrivals = _learn(row, now_ms, moving.x_m[i], moving.y_m[i], moving.speed_mps[i], costs)
        chosen.x_m[i] = moving.x_m[i]
        chosen.y_m[i] = moving.y_m[i]
        chosen.offsets[i] = end
        last_m = np.inf if count <= k + row["extra"] else ranked.length_m[ranked.offsets[i + 1] - 1]
        if row["base_extra"] == BY_COST and count > k:
            _recall(objects, id_keys, id_values, ranked, ranked.offsets[i], count, known)
            _sweep(known, count, moving.x_m[i], moving.y_m[i])
            held = _take_cheapest(row, i, moving, ranked, last_m, arrivals, costs, known, chosen, end)
            row["extra"] = held - k
        else:
            held = min(count, k + int(row["extra"]))
            _take_first(ranked, chosen, i, held, end)
        ahead_m = length(chosen.x_m[i] - moving.x_m[i], chosen.y_m[i] - moving.y_m[i], 0.0)
        row["ample_m"] = last_m + ahead_m
        end += held
    chosen.offsets[rows.shape[0]] = end
    return end
