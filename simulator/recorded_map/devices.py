"""The reports and the held objects of devices as parts of a recorded run.

A holding is a row of the columns `holding_...`. The rows of `held_...` between the `holding_end` of the
row before and its own are the objects that have changed; a text part of NaN stands for one that is no
longer held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nearcast import Boolean, Circle, Rectangle, Spec, TopK
from nearcast.expressions import clauses_of
from safe_region.earth.frame import Frame
from simulator.recorded_map.columns import Column, fixed, times
from simulator.replay.device_log import DeviceLog
from simulator.workload.rows import ObjectRow

NO_OBJECT = 2**32 - 1


def logged_header(
    log: DeviceLog, device_ids: Sequence[str], objects: Sequence[ObjectRow]
) -> dict[str, Any]:
    """Return the numbers of the recorded devices; by number their subscriptions, and keys of objects."""
    numbers = {one: number for number, one in enumerate(device_ids)}
    return {
        "logged": sorted(numbers[one] for one in log.device_ids),
        "specs": {numbers[one]: shown_spec(spec) for one, spec in log.specs.items() if spec is not None},
        "object_keys": {number: objects[number].object_key for number in _numbers(log, objects).values()},
    }


def shown_spec(spec: Spec) -> dict[str, Any]:
    """Return a spec in the form of `SubscriptionSpec` in JSON, as far as the page shows it."""
    if isinstance(spec, TopK):
        keywords, scale_m = sorted(spec.keywords), spec.distance_scale_m or 0.0
        return {
            "top_k": {"keywords": keywords, "k": spec.k, "alpha": spec.alpha, "distance_scale_m": scale_m}
        }
    clauses = [
        {"required": sorted(one.required), "excluded": sorted(one.excluded)}
        for one in clauses_of(spec.expression)
    ]
    return {"boolean": {"clauses": clauses, "moving": spec.moving, **_range(spec)}}


def _range(spec: Boolean) -> dict[str, Any]:
    match spec.range:
        case Circle(radius_m):
            return {"circle": {"radius_m": radius_m}}
        case Rectangle(width_m, height_m):
            return {"rectangle": {"width_m": width_m, "height_m": height_m}}
        case _:
            return {}


def logged_columns(
    log: DeviceLog, device_ids: Sequence[str], objects: Sequence[ObjectRow], frame: Frame
) -> dict[str, Column]:
    """Return the columns of reports and of held objects."""
    numbers = {one: number for number, one in enumerate(device_ids)}
    return {**_reports(log, numbers), **_holdings(log, numbers, frame), **_held(log, objects)}


def _reports(log: DeviceLog, numbers: dict[str, int]) -> dict[str, Column]:
    rows = log.reports
    return {
        "report_ms": times(one.run_ms for one in rows),
        "report_device": np.array([numbers[one.device_id] for one in rows], np.uint32),
        "report_lon": fixed(np.array([one.lon for one in rows], np.float64)),
        "report_lat": fixed(np.array([one.lat for one in rows], np.float64)),
    }


def _holdings(log: DeviceLog, numbers: dict[str, int], frame: Frame) -> dict[str, Column]:
    rows = log.holdings
    anchors = np.array([frame.unproject(*one.anchor) for one in rows], np.float64).reshape(-1, 2)
    return {
        "holding_ms": times(one.run_ms for one in rows),
        "holding_device": np.array([numbers[one.device_id] for one in rows], np.uint32),
        "holding_lon": fixed(anchors[:, 0]),
        "holding_lat": fixed(anchors[:, 1]),
        "holding_bound_m": np.array([one.bound_m for one in rows], np.float32),
        "holding_is_part": np.array([one.is_part for one in rows], np.uint8),
        "holding_end": np.cumsum([len(one.changes) for one in rows], dtype=np.uint32),
    }


def _held(log: DeviceLog, objects: Sequence[ObjectRow]) -> dict[str, Column]:
    numbers = _numbers(log, objects)
    changes = [pair for one in log.holdings for pair in one.changes]
    next_ids = [one.next_id for one in log.holdings]
    return {
        "holding_next": np.array([numbers.get(one, NO_OBJECT) for one in next_ids], np.uint32),
        "held_object": np.array([numbers[object_id] for object_id, _ in changes], np.uint32),
        "held_text_m": np.array([text_m for _, text_m in changes], np.float32),
    }


def _numbers(log: DeviceLog, objects: Sequence[ObjectRow]) -> dict[int, int]:
    """Return the row of each held object, by its id on the server."""
    rows = {(row.object_key, row.publish_ms): number for number, row in enumerate(objects)}
    return {object_id: rows[name] for object_id, name in log.names.items()}
