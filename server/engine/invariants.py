"""What must always hold in the engine, from the definitions. For tests; O(subscriptions * objects)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from index.contracts import InconsistentIndexError
from safe_region.scoring import length, text_distance
from server.engine.standing import Held, Standing
from server.model import LiveObject


def check_alive(objects: Iterable[LiveObject], now_ms: int) -> None:
    """Require every object the engine holds to be alive."""
    for item in objects:
        if not item.created_ms <= now_ms < item.expiry_ms:
            raise InconsistentIndexError(f"object {item.object_id} is not alive")


def check_holders(holders: Mapping[int, set[int]], awake: Iterable[Standing]) -> None:
    """Require that the result index is the inverse of the buffers."""
    inverse = {(key, handle) for key, handles in holders.items() for handle in handles}
    if inverse != {(key, standing.handle) for standing in awake for key in standing.buffer}:
        raise InconsistentIndexError("the result index is not the inverse of the buffers")


def check_buffer(standing: Standing, objects: Collection[LiveObject], buffer_extra: int) -> None:
    """Require that a buffer holds exactly the live qualifying objects below its reach, within bounds."""
    if len(standing.buffer) > standing.spec.k + 2 * buffer_extra:
        raise InconsistentIndexError(
            f"the buffer of subscription {standing.handle} has outgrown its bound"
        )
    wanted = set(standing.spec.keywords)
    expected = {}
    for item in objects:
        common = len(wanted.intersection(item.keywords))
        if common == 0:
            continue
        r_m = standing.weight_m * text_distance(
            standing.spec.similarity, common, len(wanted), len(item.keywords)
        )
        dx = standing.anchor.x_m - item.point.x_m
        dy = standing.anchor.y_m - item.point.y_m
        here = Held(length(dx, dy, r_m), r_m)
        if (here.length_m, item.object_id) < standing.reach:
            expected[item.object_id] = here
    if standing.buffer != expected:
        raise InconsistentIndexError(
            f"subscription {standing.handle} does not hold exactly what is below its reach"
        )
