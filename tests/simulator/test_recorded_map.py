"""The file of a run for the live map, read as the page reads it."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from shapely import Point, Polygon

from safe_region.earth.frame import Frame
from server.settings import load_settings
from simulator.recorded_map import MAGIC, NOWHERE, RING_VERTICES, write_recorded_map
from simulator.replay.options import ReplayOptions
from simulator.replay.recording import Recording
from simulator.replay.replay import Replay
from simulator.tables import read_table
from tests.support.servers import serving

UNIT_DEG = 1e-7


def read(path):
    """Return the header and the columns of a file."""
    data = path.read_bytes()
    assert data[:8] == MAGIC
    (length,) = struct.unpack_from("<I", data, 8)
    header = json.loads(data[12 : 12 + length])
    columns = {
        name: np.frombuffer(data, one["type"], one["length"], int(one["offset"]))
        for name, one in header["columns"].items()
    }
    assert all(int(one["offset"]) % 8 == 0 for one in header["columns"].values())
    return header, columns


def test_roads_positions_and_objects_are_those_of_the_simulation(simulation, tmp_path):
    write_recorded_map(simulation.path, tmp_path / "run.ncmap")
    header, columns = read(tmp_path / "run.ncmap")
    world = simulation.world
    assert (header["name"], header["steps"]) == (world.name, world.tick_count)
    roads = read_table(simulation.path, "roads").to_pylist()
    ends = {
        frozenset([(one["source_lon"], one["source_lat"]), (one["target_lon"], one["target_lat"])])
        for one in roads
    }
    assert len(columns["road_class"]) == len(ends)
    lons = columns["track_lon"].reshape(world.tick_count, -1)
    lats = columns["track_lat"].reshape(world.tick_count, -1)
    assert lons.shape[1] == len(header["device_ids"])
    found = 0
    for tick in Recording(simulation.path).ticks():
        for fix in tick.fixes:
            column = header["device_ids"].index(fix.device_id)
            assert lons[tick.number, column] * UNIT_DEG == pytest.approx(fix.lon, abs=UNIT_DEG)
            assert lats[tick.number, column] * UNIT_DEG == pytest.approx(fix.lat, abs=UNIT_DEG)
            found += 1
    assert found == np.count_nonzero(lons != NOWHERE)
    assert len(columns["report_ms"]) == 0


def test_an_object_ends_with_its_lifetime_or_before(simulation, tmp_path):
    write_recorded_map(simulation.path, tmp_path / "run.ncmap")
    header, columns = read(tmp_path / "run.ncmap")
    rows = list(Recording(simulation.path).objects())
    keyed = {}
    for i, row in enumerate(rows):
        end_ms = row.publish_ms + row.ttl_ms
        if row.retract_ms is not None:
            end_ms = min(end_ms, row.retract_ms)
        later = [one.publish_ms for one in rows[i + 1 :] if one.object_key == row.object_key]
        keyed[i] = min([end_ms, *later])
    assert columns["object_ms"].tolist() == [row.publish_ms for row in rows]
    assert columns["object_end_ms"].tolist() == [keyed[i] for i in range(len(rows))]
    words = np.array(header["keywords"])[columns["keyword_number"]]
    pairs = set(zip(columns["keyword_object"].tolist(), words.tolist(), strict=True))
    assert pairs == {(i, word) for i, row in enumerate(rows) for word in row.keywords}


async def test_reports_are_those_of_a_replay(simulation, tmp_path):
    settings = load_settings(
        {"area": list(simulation.world.area), "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        replay = Replay(Recording(simulation.path), ReplayOptions(f"127.0.0.1:{server.port}"))
        await replay.run()
    write_recorded_map(simulation.path, tmp_path / "run.ncmap", (replay.track, replay.range_track))
    header, columns = read(tmp_path / "run.ncmap")
    times_ms = columns["report_ms"]
    assert np.all(np.diff(times_ms.astype(np.int64)) >= 0)
    assert len(times_ms) > 0
    lons = columns["track_lon"].reshape(header["steps"], -1)
    at = times_ms // header["step_ms"]
    np.testing.assert_array_equal(columns["report_lon"], lons[at, columns["report_device"]])
    check_regions(columns, simulation.world)


def check_regions(columns, world):
    """Every device is within its region at every tick."""
    frame = Frame.of(world.area)
    rings = np.stack([columns[name].reshape(-1, RING_VERTICES) for name in ("ring_lon", "ring_lat")], 2)
    places = np.stack(
        [columns[name].reshape(world.tick_count, -1) for name in ("track_lon", "track_lat")], 2
    )
    scale = UNIT_DEG * np.array([frame.x_m_per_deg, frame.y_m_per_deg])
    inside = 0
    for device in set(columns["region_device"].tolist()):
        rows = np.flatnonzero(columns["region_device"] == device)
        for tick in range(world.tick_count):
            now = rows[columns["region_ms"][rows] <= tick * world.period_ms]
            if not len(now) or rings[now[-1], 0, 0] == NOWHERE or places[tick, device, 0] == NOWHERE:
                continue
            place = places[tick, device].astype(np.float64)
            polygon = Polygon((rings[now[-1]] - place) * scale)
            # A chord of the polygon lies within the region by a part of its size.
            assert polygon.distance(Point(0, 0)) <= 1.0 + 0.02 * polygon.length
            inside += polygon.contains(Point(0, 0))
    assert inside > 100
