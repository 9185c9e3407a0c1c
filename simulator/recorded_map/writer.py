"""A run as one compact file for the live map: roads, true positions, objects, reports and held objects.

A position of 4 + 4 bytes is kept for each device and step; a run with too many has longer steps. Only the
devices of a log (`simulator.replay.device_log`) have reports and held objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from pathlib import Path

import numpy as np

from safe_region.earth.frame import Frame
from simulator.network.traffic import RoadClass
from simulator.recorded_map.columns import NOWHERE, Column, encoded, fixed, times
from simulator.recorded_map.devices import logged_columns, logged_header
from simulator.replay.device_log import DeviceLog
from simulator.replay.recording import Recording
from simulator.tables import read_table
from simulator.workload.rows import ObjectRow

SUFFIX = ".ncmap"

_POSITIONS_MAX = 4_000_000
"""Positions of devices in a file: 32 MB."""


def write_recorded_map(folder: Path, out: Path, log: DeviceLog | None = None) -> None:
    """Write the file of a simulation.

    Parameters
    ----------
    folder
        The folder that `simulate` wrote.
    out
        The file; replaced if it exists.
    log
        The log of a replay; without, the file has no reports and no results.

    Raises
    ------
    SimulationError
        If the folder is no simulation, or a table cannot be read.
    OSError
        If the file cannot be written.
    """
    recording = Recording(folder)
    world = recording.world
    device_ids = sorted(read_table(folder, "devices")["device_id"].to_pylist())
    objects = list(recording.objects())
    log = log or DeviceLog(lambda _id: None)
    counted = set(log.device_ids) or set(device_ids)
    stride = _stride(len(device_ids), world.tick_count)
    object_columns, keywords = _objects(objects)
    header = {
        "name": world.name,
        "area": list(world.area),
        "plane": plane(Frame.of(world.area)),
        "start_ms": world.start_ms,
        "period_ms": world.period_ms,
        "step_ms": world.period_ms * stride,
        "steps": -(-world.tick_count // stride),
        "device_ids": device_ids,
        "road_classes": [one.value for one in RoadClass],
        "keywords": keywords,
        "water": world.water,
        **logged_header(log, device_ids, objects),
    }
    columns = {
        **_roads(folder),
        **_positions(recording, device_ids, stride, counted),
        **object_columns,
        **logged_columns(log, device_ids, objects, Frame.of(world.area)),
    }
    out.write_bytes(encoded(header, columns))


def _stride(device_count: int, tick_count: int) -> int:
    """Return the number of ticks of a step."""
    return max(1, -(-device_count * tick_count // _POSITIONS_MAX))


def plane(frame: Frame) -> dict[str, float]:
    """Return the numbers of a projection."""
    return {name: value for name, value in asdict(frame).items() if name != "area"}


def _roads(folder: Path) -> dict[str, Column]:
    """Return the ends and the class of each road; of the two directions of a road only one."""
    table = read_table(folder, "roads")
    names = ("source_lon", "source_lat", "target_lon", "target_lat")
    ends = np.column_stack([fixed(table[name].to_numpy()) for name in names])
    is_back = (ends[:, 0] > ends[:, 2]) | ((ends[:, 0] == ends[:, 2]) & (ends[:, 1] > ends[:, 3]))
    ends[is_back] = ends[is_back][:, [2, 3, 0, 1]]
    ends, first = np.unique(ends, axis=0, return_index=True)
    numbers = {one.value: number for number, one in enumerate(RoadClass)}
    classes = [numbers[one] for one in table["road_class"].to_pylist()]
    columns = ("road_lon1", "road_lat1", "road_lon2", "road_lat2")
    return {
        **{name: np.ascontiguousarray(ends[:, i]) for i, name in enumerate(columns)},
        "road_class": np.array(classes, np.uint8)[first],
    }


def _positions(
    recording: Recording, device_ids: list[str], stride: int, counted: AbstractSet[str]
) -> dict[str, Column]:
    """Return the true positions, step by step and device by device; and the moves of some devices."""
    rows = {one: row for row, one in enumerate(device_ids)}
    steps = -(-recording.world.tick_count // stride)
    lons, lats = (np.full((steps, len(rows)), NOWHERE, np.int32) for _ in range(2))
    moves = np.zeros(recording.world.tick_count, np.uint32)
    attached: set[str] = set()
    for tick in recording.ticks():
        present = counted & {fix.device_id for fix in tick.fixes}
        moves[tick.number] = len(present & attached)
        attached |= present
        if tick.number % stride:
            continue
        found = [rows[fix.device_id] for fix in tick.fixes]
        lons[tick.number // stride, found] = fixed(np.array([fix.lon for fix in tick.fixes]))
        lats[tick.number // stride, found] = fixed(np.array([fix.lat for fix in tick.fixes]))
    moved = np.cumsum(moves, dtype=np.uint32)[::stride]
    return {"track_lon": lons.ravel(), "track_lat": lats.ravel(), "moves": moved}


def _objects(rows: Sequence[ObjectRow]) -> tuple[dict[str, Column], list[str]]:
    """Return the objects by time of publication, and the keywords that they have.

    An object ends when its lifetime does, when it is retracted, or when its key is published again.
    """
    words = sorted({word for row in rows for word in row.keywords})
    numbers = {word: number for number, word in enumerate(words)}
    ends = [_end_ms(row.publish_ms, row.ttl_ms, row.retract_ms) for row in rows]
    latest: dict[str, int] = {}
    for i, row in enumerate(rows):
        before = latest.get(row.object_key)
        if before is not None:
            ends[before] = min(ends[before], row.publish_ms)
        latest[row.object_key] = i
    pairs = [(i, numbers[word]) for i, row in enumerate(rows) for word in row.keywords]
    return {
        "object_ms": times(row.publish_ms for row in rows),
        "object_end_ms": times(ends),
        "object_lon": fixed(np.array([row.lon for row in rows], np.float64)),
        "object_lat": fixed(np.array([row.lat for row in rows], np.float64)),
        "keyword_object": np.array([i for i, _ in pairs], np.uint32),
        "keyword_number": np.array([number for _, number in pairs], np.uint32),
    }, words


def _end_ms(publish_ms: int, ttl_ms: int, retract_ms: int | None) -> int:
    end_ms = publish_ms + ttl_ms
    return end_ms if retract_ms is None else min(end_ms, retract_ms)
