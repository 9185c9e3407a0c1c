"""The file of a run for the live map, read as the page reads it."""

from __future__ import annotations

import asyncio
import json
import math
import struct
from collections import Counter, defaultdict

import numpy as np
import pytest

from safe_region.earth.frame import Frame
from server.settings import load_settings
from simulator.recorded_map.columns import MAGIC, NOWHERE
from simulator.recorded_map.writer import write_recorded_map
from simulator.replay import device_log
from simulator.replay.device_log import recorded
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


class Held:
    """The objects that devices hold, from the columns of a file up to a moment that advances."""

    def __init__(self, header, columns):
        self.header, self.columns = header, columns
        self.next_row = 0
        self.objects = defaultdict(dict)

    def advance(self, run_ms):
        columns = self.columns
        times_ms = columns["holding_ms"]
        while self.next_row < len(times_ms) and times_ms[self.next_row] <= run_ms:
            row = self.next_row
            held = self.objects[int(columns["holding_device"][row])]
            for i in range(columns["holding_end"][row - 1] if row else 0, columns["holding_end"][row]):
                number, text_m = int(columns["held_object"][i]), float(columns["held_text_m"][i])
                held.pop(number, None)
                if not math.isnan(text_m):
                    held[number] = text_m
            self.next_row += 1

    def result(self, device, tick, frame):
        """Return the kind of the subscription, and scores and keys of its result, best first."""
        columns = self.columns
        spec = self.header["specs"][str(device)]
        at = tick * len(self.header["device_ids"]) + device
        here = frame.project(columns["track_lon"][at] * UNIT_DEG, columns["track_lat"][at] * UNIT_DEG)
        ranked = sorted(
            (math.dist(here, self.place(number, frame)) + text_m, number)
            for number, text_m in self.objects[device].items()
        )
        keys = self.header["object_keys"]
        if "top_k" in spec:
            k, scale = spec["top_k"]["k"], spec["top_k"]["alpha"] / frame.maxdist_m
            return "top_k", [(length_m * scale, keys[str(number)]) for length_m, number in ranked[:k]]
        found = [one for one in ranked if self.is_within(one, spec["boolean"], here, frame)]
        return "boolean", [(length_m, keys[str(number)]) for length_m, number in found]

    def place(self, number, frame):
        columns = self.columns
        lon, lat = columns["object_lon"][number] * UNIT_DEG, columns["object_lat"][number] * UNIT_DEG
        return frame.project(lon, lat)

    def is_within(self, ranked, spec, here, frame):
        length_m, number = ranked
        if "circle" in spec:
            return length_m <= spec["circle"]["radius_m"]
        box, place = spec["rectangle"], self.place(number, frame)
        dx_m, dy_m = abs(place.x_m - here.x_m), abs(place.y_m - here.y_m)
        return dx_m <= box["width_m"] / 2 and dy_m <= box["height_m"] / 2


class Watched(Replay):
    """A replay that keeps the results of the devices of its log: keys and scores, by tick and device."""

    def __init__(self, recording, options):
        super().__init__(recording, options)
        self.results = {}

    def follow(self, fixes):
        super().follow(fixes)
        for fix in fixes:
            subscription = recorded(self.devices.subscriptions(fix.device_id))
            if subscription is not None:
                found = [(match.object.key, match.score) for match in subscription.results()]
                self.results[self.tick_number, fix.device_id] = found


@pytest.fixture(scope="module")
def replayed(simulation, tmp_path_factory):
    """A replay, and the header and the columns of its file."""
    path = tmp_path_factory.mktemp("replayed") / "run.ncmap"
    replay = asyncio.run(watched(simulation))
    write_recorded_map(simulation.path, path, replay.log)
    return replay, *read(path)


async def watched(simulation):
    settings = load_settings(
        {"area": list(simulation.world.area), "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        replay = Watched(Recording(simulation.path), ReplayOptions(f"127.0.0.1:{server.port}"))
        await replay.run()
    assert replay.report.mismatch_count == 0
    return replay


def test_devices_and_changes_have_bounds(simulation, tmp_path, monkeypatch):
    monkeypatch.setattr(device_log, "DEVICES_MAX", 9)
    monkeypatch.setattr(device_log, "HOLDINGS_MAX", 3)
    replay = asyncio.run(watched(simulation))
    write_recorded_map(simulation.path, tmp_path / "run.ncmap", replay.log)
    header, columns = read(tmp_path / "run.ncmap")
    assert len(header["logged"]) == 9
    assert set(columns["report_device"].tolist()) <= set(header["logged"])
    counts = Counter(columns["holding_device"].tolist())
    assert set(counts) == {int(number) for number in header["specs"]} <= set(header["logged"])
    assert max(counts.values()) == 4
    for device, count in counts.items():
        bounds_m = columns["holding_bound_m"][columns["holding_device"] == device]
        assert np.isnan(bounds_m).tolist() == [i == 3 for i in range(count)]  # the fourth ends the record
    moves = columns["moves"][-1]
    assert moves == 9 * (header["steps"] - 1)


def test_reports_are_those_of_a_replay(replayed):
    _, header, columns = replayed
    times_ms = columns["report_ms"]
    assert np.all(np.diff(times_ms.astype(np.int64)) >= 0)
    assert len(times_ms) > 0
    lons = columns["track_lon"].reshape(header["steps"], -1)
    at = times_ms // header["step_ms"]
    np.testing.assert_array_equal(columns["report_lon"], lons[at, columns["report_device"]])


def test_counts_are_those_of_the_summary(replayed):
    replay, header, columns = replayed
    report = replay.report
    assert report.reports_of_stationary == 0  # those devices are not in the file
    assert len(columns["report_ms"]) == report.counters.reports
    assert columns["moves"][-1] == report.counters.moves
    for tick, moment in zip(report.timeline.ticks, report.timeline.moments, strict=True):
        assert np.count_nonzero(columns["report_ms"] <= tick * header["step_ms"]) == moment.reports
        assert columns["moves"][tick] == moment.moves


def test_results_are_those_of_the_devices(replayed, simulation):
    replay, header, columns = replayed
    frame = Frame.of(simulation.world.area)
    assert header["plane"]["x_m_per_deg"] == frame.x_m_per_deg
    held = Held(header, columns)
    kinds = Counter()
    for (tick, device_id), expected in replay.results.items():
        device = header["device_ids"].index(device_id)
        held.advance(tick * header["step_ms"])
        kind, found = held.result(device, tick, frame)
        assert [key for _, key in found] == [key for key, _ in expected], (tick, device_id)
        scores = [score for score, _ in found]
        if kind == "top_k":
            # Positions are rounded to a centimetre.
            assert scores == pytest.approx([score for _, score in expected], abs=1e-5)
        kinds[kind] += 1
    assert min(kinds["top_k"], kinds["boolean"]) > 50
