"""Compute where objects may affect subscriptions, and test whether results hold at their devices.

In the mode ELLIPSE a new object may enter the result somewhere in R only if its least length there is at
most the upper bound of f_k over R, (gamma + f_k(a)) / 2 (lamps.txt lemma 4, theorem 4). In the anchored
mode only if its length at the anchor is below the reach.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.share_kernels import Texts, share_of
from engine.top_k.choice_kernels import STRICT
from engine.top_k.layout import ELLIPSE, Row, Rows
from index.batches import Floats, Ints
from index.tables.buckets.question_kernels import Answered
from index.tables.id_map_kernels import NO_VALUE, Values, find
from index.tables.selection_kernels import drain, is_less, offer
from safe_region.jit import kernel, leaf
from safe_region.regions.ellipse_kernels import enclose
from safe_region.scoring.kernels import length

Slots = npt.NDArray[np.int32]

Flags = npt.NDArray[np.bool_]

_OUTWARD = 1.0 + 1e-12
_ANY_ID = np.iinfo(np.int64).max


class Located(NamedTuple):
    """Positions of devices, and their pending objects: row i has `pending_offsets[i]` up to the next."""

    x_m: Floats
    y_m: Floats
    pending_offsets: Ints
    pending_ids: Ints


@kernel
def fill_reaches(
    objects: Rows,
    subscriptions: Rows,
    holdings: Rows,
    slots: Slots,
    x_m: Floats,
    y_m: Floats,
    radius_m: Floats,
    reach_m: Floats,
    reach_id: Ints,
    scratch: Floats,
) -> None:
    """Write the places and reaches of these subscriptions for the index.

    `scratch` has shape (3, the largest k).
    """
    for i in range(slots.shape[0]):
        subscription = subscriptions[slots[i]]
        x_m[i] = subscription["x_m"]
        y_m[i] = subscription["y_m"]
        radius_m[i] = 0.0
        reach_m[i] = subscription["reach_m"]
        reach_id[i] = subscription["reach_id"]
        count = subscription["buffer_count"]
        if subscription["region"] != ELLIPSE or count == 0 or math.isinf(reach_m[i]):
            continue
        worst = 0.0
        for j in range(count):
            holding = holdings[subscription["buffer_start"] + j]
            item = objects[holding["object"]]
            scratch[0, j] = item["x_m"] - subscription["x_m"]
            scratch[1, j] = item["y_m"] - subscription["y_m"]
            scratch[2, j] = holding["r_m"]
            worst = max(worst, length(scratch[0, j], scratch[1, j], scratch[2, j]))
        x, y, radius = enclose(reach_m[i], scratch[0, :count], scratch[1, :count], scratch[2, :count])
        x_m[i] += x
        y_m[i] += y
        radius_m[i] = radius
        reach_m[i] = (reach_m[i] + worst) / 2.0 * _OUTWARD
        reach_id[i] = _ANY_ID


@leaf
def _worst_length(objects: Rows, holdings: Rows, subscription: Row, x_m: float, y_m: float) -> float:
    worst = 0.0
    start = subscription["buffer_start"]
    for place in range(start, start + subscription["buffer_count"]):
        item = objects[holdings[place]["object"]]
        worst = max(worst, length(x_m - item["x_m"], y_m - item["y_m"], holdings[place]["r_m"]))
    return worst


@leaf
def _is_inside(objects: Rows, holdings: Rows, subscription: Row, x_m: float, y_m: float) -> bool:
    """Return whether an ELLIPSE buffer is the result at a position, apart from pending objects."""
    if math.isinf(subscription["reach_m"]):
        return True
    if subscription["buffer_count"] < subscription["k"]:
        return False
    moved = length(x_m - subscription["x_m"], y_m - subscription["y_m"], 0.0)
    worst = _worst_length(objects, holdings, subscription, x_m, y_m)
    return bool(moved == 0.0 or worst + moved < subscription["reach_m"] * STRICT)


@leaf
def _is_held(holdings: Rows, subscription: Row, object_slot: int) -> bool:
    start = subscription["buffer_start"]
    for place in range(start, start + subscription["buffer_count"]):
        if holdings[place]["object"] == object_slot:
            return True
    return False


@kernel
def resolve(
    objects: Rows,
    id_keys: Ints,
    id_values: Values,
    subscriptions: Rows,
    texts: Texts,
    holdings: Rows,
    slots: Slots,
    located: Located,
    answered: Answered,
    known: Flags,
) -> None:
    """Rank the buffers of ELLIPSE subscriptions together with their pending objects.

    Row i has space for its k + 1 best. `known[i]` is false if the objects have to be searched: either the
    buffer is not the result at the device's position, or no pending object entered, so that the (k+1)-th
    best is unknown. Source: lamps.txt algorithm 3.
    """
    for i in range(slots.shape[0]):
        subscription = subscriptions[slots[i]]
        x_m, y_m = located.x_m[i], located.y_m[i]
        answered.sizes[i] = 0
        known[i] = False
        if not _is_inside(objects, holdings, subscription, x_m, y_m):
            continue
        begin, end = answered.starts[i], answered.starts[i + 1]
        kept_lengths = answered.lengths[begin:end]
        kept_ids = answered.ids[begin:end]
        kept_shares = answered.shares[begin:end]
        size = 0
        worst, worst_id = 0.0, -1
        start = subscription["buffer_start"]
        for place in range(start, start + subscription["buffer_count"]):
            item = objects[holdings[place]["object"]]
            here = length(x_m - item["x_m"], y_m - item["y_m"], holdings[place]["r_m"])
            size = offer(
                kept_lengths, kept_ids, kept_shares, size, here, item["id"], holdings[place]["r_m"]
            )
            if is_less(worst, worst_id, here, item["id"]):
                worst, worst_id = here, item["id"]
        is_entered = math.isinf(subscription["reach_m"])
        for j in range(located.pending_offsets[i], located.pending_offsets[i + 1]):
            object_slot = find(id_keys, id_values, located.pending_ids[j])
            if object_slot == NO_VALUE or _is_held(holdings, subscription, object_slot):
                continue  # it is gone, or was inserted in another way
            item = objects[object_slot]
            r_m = share_of(subscription, item, texts)
            here = length(x_m - item["x_m"], y_m - item["y_m"], r_m)
            size = offer(kept_lengths, kept_ids, kept_shares, size, here, item["id"], r_m)
            if is_less(here, item["id"], worst, worst_id):
                is_entered = True
        if is_entered:
            drain(kept_lengths, kept_ids, kept_shares, size)
            answered.sizes[i] = size
            known[i] = True
