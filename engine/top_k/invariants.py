"""What must always hold in the engine, from the definitions. For tests; O(subscriptions * objects)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from engine.engine import Engine
from engine.top_k.layout import ELLIPSE, NO_HOLDING
from index.batches import KeywordIds
from index.contracts import InconsistentIndexError
from safe_region.scoring import length, text_distance

Pair = tuple[float, int]


def check_engine(engine: Engine) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        Naming what does not hold.
    """
    for part in (engine.objects, engine.subscriptions, engine.object_index, engine.subscription_index):
        part.check()
    rows = engine.subscriptions.rows
    used = engine.subscriptions.used()
    awake = used[rows["is_awake"][used] == 1]
    if len(engine.subscription_index) != len(awake):
        raise InconsistentIndexError("the subscription index does not hold what is awake")
    if len(engine.object_index) != len(engine.objects):
        raise InconsistentIndexError("the object index does not hold what is alive")
    if (engine.objects.rows["expiry_ms"][engine.objects.used()] <= engine.now_ms).any():
        raise InconsistentIndexError("the engine holds what is not alive")
    room = int(rows["buffer_room"][awake].sum()) + engine.buffers.free_count()
    if room != engine.buffers.end or rows["buffer_room"][used].sum() != rows["buffer_room"][awake].sum():
        raise InconsistentIndexError("the buffers have lost count of their room")
    _check_chains(engine)
    for slot in awake.tolist():
        _check_buffer(engine, slot)


def _check_chains(engine: Engine) -> None:
    """Require that the result index is the inverse of the buffers."""
    holdings, objects = engine.buffers.holdings, engine.objects
    held = set()
    for slot in engine.subscriptions.used().tolist():
        row = engine.subscriptions.rows[slot]
        start = int(row["buffer_start"])
        held |= {(slot, place) for place in range(start, start + int(row["buffer_count"]))}
    chained = set()
    for slot in objects.used().tolist():
        previous, place = NO_HOLDING, int(objects.rows["first_holding"][slot])
        while place != NO_HOLDING:
            holding = holdings[place]
            if holding["object"] != slot or holding["previous"] != previous:
                raise InconsistentIndexError(f"the chain of object slot {slot} is broken at {place}")
            chained.add((int(holding["owner"]), place))
            previous, place = place, int(holding["next"])
    if chained != held:
        raise InconsistentIndexError("the result index is not the inverse of the buffers")


def _ranked(engine: Engine, slot: int) -> Iterator[tuple[Pair, float]]:
    """Yield ((length at the anchor, id), r) of every live qualifying object."""
    row = engine.subscriptions.rows[slot]
    wanted: KeywordIds = engine.subscriptions.keywords(slot)
    for object_slot in engine.objects.used().tolist():
        item = engine.objects.rows[object_slot]
        words = engine.objects.keywords(object_slot)
        common = len(np.intersect1d(wanted, words))
        if common:
            distance = text_distance(int(row["similarity"]), common, len(wanted), len(words))
            r_m = float(row["weight_m"]) * distance
            here = length(
                float(row["x_m"]) - float(item["x_m"]), float(row["y_m"]) - float(item["y_m"]), r_m
            )
            yield (here, int(item["id"])), r_m


def _check_buffer(engine: Engine, slot: int) -> None:
    """Require that a buffer holds what its mode of region says, within its bound."""
    row = engine.subscriptions.rows[slot]
    handle, k = int(row["id"]), int(row["k"])
    if not 0 <= int(row["buffer_count"]) <= int(row["buffer_room"]):
        raise InconsistentIndexError(f"the buffer of subscription {handle} has outgrown its bound")
    ids, shares = engine.buffer(handle)
    held = dict(zip(ids.tolist(), shares.tolist(), strict=True))
    ranked = sorted(_ranked(engine, slot))
    reach = (float(row["reach_m"]), int(row["reach_id"]))
    if row["region"] == ELLIPSE:
        if row["pending_count"] or (len(held) < k and math.isfinite(reach[0])):
            return  # until the device says where it is, nobody knows its result
        expected = {pair[1]: r_m for pair, r_m in ranked[:k]}
    else:
        expected = {pair[1]: r_m for pair, r_m in ranked if pair < reach}
    if held != expected:
        raise InconsistentIndexError(f"subscription {handle} does not hold exactly what it should")
