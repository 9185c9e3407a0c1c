"""A run as one compact file for the live map: roads, true positions, objects, and the reports made.

The page of the gateway reads it whole (`gateway/map/recording.js`). The file has, with little-endian
numbers: 8 bytes `NCRUN001`; the length of the header; the header as JSON; then columns, each beginning at
a multiple of 8. The header has the type, the offset and the length of each column. Positions are
integers of 1e-7 degrees; `NOWHERE` stands for none. Times are milliseconds since the start of the run.

A position of 4 + 4 bytes is kept for each device and step; a run with too many has longer steps. Only
the devices that a replay follows (`track.DEVICES_MAX`) have reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.network.traffic import RoadClass
from simulator.replay.recording import Recording
from simulator.replay.track import Ring, Track
from simulator.tables import read_table

MAGIC = b"NCRUN001"
SUFFIX = ".ncmap"
NOWHERE = -(2**31)
RING_VERTICES = 60

_POSITIONS_MAX = 4_000_000
"""Positions of devices in a file: 32 MB."""
_E7 = 1e7
_ALIGNED = 8

Column = npt.NDArray[Any]


def write_recorded_map(folder: Path, out: Path, tracks: Sequence[Track] = ()) -> None:
    """Write the file of a simulation.

    Parameters
    ----------
    folder
        The folder that `simulate` wrote.
    out
        The file; replaced if it exists.
    tracks
        What a replay has followed; without, the file has no reports.

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
    stride = _stride(len(device_ids), world.tick_count)
    objects, keywords = _objects(recording)
    area = world.area
    header = {
        "name": world.name,
        "area": [area.lon_min, area.lat_min, area.lon_max, area.lat_max],
        "start_ms": world.start_ms,
        "step_ms": world.period_ms * stride,
        "steps": -(-world.tick_count // stride),
        "device_ids": device_ids,
        "road_classes": [one.value for one in RoadClass],
        "keywords": keywords,
        "ring_vertices": RING_VERTICES,
        "water": world.water,
    }
    columns = {
        **_roads(folder),
        **_positions(recording, device_ids, stride),
        **objects,
        **_reports(tracks, device_ids, world.start_ms),
        **_regions(tracks, device_ids, world.start_ms),
    }
    out.write_bytes(encoded(header, columns))


def _stride(device_count: int, tick_count: int) -> int:
    """Return the number of ticks of a step."""
    return max(1, -(-device_count * tick_count // _POSITIONS_MAX))


def encoded(header: dict[str, Any], columns: dict[str, Column]) -> bytes:
    """Return the bytes of a file. Offsets are texts of one width, so the header's length is known."""
    described = {name: _description(column, 0) for name, column in columns.items()}
    size = len(MAGIC) + 4 + len(_json(header, described))
    end = size
    for name, column in columns.items():
        begin = -(-end // _ALIGNED) * _ALIGNED
        described[name] = _description(column, begin)
        end = begin + column.nbytes
    text = _json(header, described)
    data = bytearray(end)
    data[:size] = MAGIC + len(text).to_bytes(4, "little") + text
    for name, column in columns.items():
        begin = int(described[name]["offset"])
        data[begin : begin + column.nbytes] = column.tobytes()
    return bytes(data)


def _json(header: dict[str, Any], described: dict[str, dict[str, Any]]) -> bytes:
    return json.dumps({**header, "columns": described}).encode()


def _description(column: Column, offset: int) -> dict[str, Any]:
    return {"type": column.dtype.name, "offset": f"{offset:012d}", "length": len(column)}


def _roads(folder: Path) -> dict[str, Column]:
    """Return the ends and the class of each road; of the two directions of a road only one."""
    table = read_table(folder, "roads")
    names = ("source_lon", "source_lat", "target_lon", "target_lat")
    ends = np.column_stack([_fixed(table[name].to_numpy()) for name in names])
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


def _positions(recording: Recording, device_ids: list[str], stride: int) -> dict[str, Column]:
    """Return the true positions, step by step and device by device."""
    rows = {one: row for row, one in enumerate(device_ids)}
    steps = -(-recording.world.tick_count // stride)
    lons, lats = (np.full((steps, len(rows)), NOWHERE, np.int32) for _ in range(2))
    for tick in recording.ticks():
        if tick.number % stride:
            continue
        found = [rows[fix.device_id] for fix in tick.fixes]
        lons[tick.number // stride, found] = _fixed(np.array([fix.lon for fix in tick.fixes]))
        lats[tick.number // stride, found] = _fixed(np.array([fix.lat for fix in tick.fixes]))
    return {"track_lon": lons.ravel(), "track_lat": lats.ravel()}


def _objects(recording: Recording) -> tuple[dict[str, Column], list[str]]:
    """Return the objects by time of publication, and the keywords that they have.

    An object ends when its lifetime does, when it is retracted, or when its key is published again.
    """
    rows = list(recording.objects())
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
        "object_ms": _times(row.publish_ms for row in rows),
        "object_end_ms": _times(ends),
        "object_lon": _fixed(np.array([row.lon for row in rows], np.float64)),
        "object_lat": _fixed(np.array([row.lat for row in rows], np.float64)),
        "keyword_object": np.array([i for i, _ in pairs], np.uint32),
        "keyword_number": np.array([number for _, number in pairs], np.uint32),
    }, words


def _end_ms(publish_ms: int, ttl_ms: int, retract_ms: int | None) -> int:
    end_ms = publish_ms + ttl_ms
    return end_ms if retract_ms is None else min(end_ms, retract_ms)


def _reports(tracks: Sequence[Track], device_ids: list[str], start_ms: int) -> dict[str, Column]:
    """Return the reports in the order of time."""
    rows = {one: row for row, one in enumerate(device_ids)}
    reported = (one for device_id, track in _followed(tracks).items() for one in track.reports(device_id))
    found = sorted(reported, key=lambda one: (one.now_ms, one.device_id))
    return {
        "report_ms": _times(one.now_ms - start_ms for one in found),
        "report_device": np.array([rows[one.device_id] for one in found], np.uint32),
        "report_lon": _fixed(np.array([one.lon for one in found], np.float64)),
        "report_lat": _fixed(np.array([one.lat for one in found], np.float64)),
    }


def _regions(tracks: Sequence[Track], device_ids: list[str], start_ms: int) -> dict[str, Column]:
    """Return the boundaries of regions in the order of time: a row for each change of one."""
    rows = {one: row for row, one in enumerate(device_ids)}
    outlined = (
        one
        for device_id, track in _followed(tracks).items()
        for one in track.outlines(device_id, RING_VERTICES)
    )
    found = sorted(outlined, key=lambda one: (one.now_ms, one.device_id))
    rings = np.array([_vertices(one.ring) for one in found], np.int32).reshape(-1, 2)
    return {
        "region_ms": _times(one.now_ms - start_ms for one in found),
        "region_device": np.array([rows[one.device_id] for one in found], np.uint32),
        "ring_lon": np.ascontiguousarray(rings[:, 0]),
        "ring_lat": np.ascontiguousarray(rings[:, 1]),
    }


def _followed(tracks: Sequence[Track]) -> dict[str, Track]:
    """Return for each device the track with most of its reports: one report can be in both."""
    best: dict[str, tuple[int, Track]] = {}
    for track in tracks:
        for device_id, count in track.report_counts().items():
            if count > best.get(device_id, (-1,))[0]:
                best[device_id] = count, track
    return {device_id: track for device_id, (_, track) in best.items()}


def _vertices(ring: Ring) -> Column:
    """Return some vertices of a ring, evenly spread."""
    if not ring:
        return np.full((RING_VERTICES, 2), NOWHERE, np.int32)
    picked = np.linspace(0, len(ring) - 1, RING_VERTICES, endpoint=False).astype(int)
    return _fixed(np.array(ring)[picked])


def _times(times_ms: Iterable[int]) -> Column:
    """Return times since the start; the greatest number stands for later ones."""
    return np.clip(np.fromiter(times_ms, np.int64), 0, 2**32 - 1).astype(np.uint32)


def _fixed(degrees: Column) -> Column:
    """Return degrees as integers of 1e-7; 180 degrees fit into 32 bits."""
    return np.round(degrees * _E7).astype(np.int32)
