"""The columns and changes of watchers, without a server."""

from __future__ import annotations

import random

import numpy as np
import pytest

from safe_region.earth.frame import Area, Frame
from server.clock import Clock
from server.core.coordinator import Coordinator
from server.core.watching import watcher as watchers
from server.core.watching.devices import DeviceColumns
from server.core.watching.view import Grid, View, cell_counts, sample
from server.core.watching.watcher import Watcher
from server.counters import ParkReason
from server.model import Place
from server.session.last_place import packed

AREA = Area(14.0, 35.0, 15.0, 36.0)
VIEW = View(AREA, 1_000, 100_000, 100_000)


@pytest.fixture
def coordinator():
    return Coordinator(Frame.of(AREA), clock=Clock(is_virtual=True))


@pytest.fixture
def devices(coordinator, monkeypatch):
    monkeypatch.setattr("server.core.watching.devices._AGE_US_MIN", 0)
    monkeypatch.setattr("server.core.watching.devices._PART", 0)
    columns = DeviceColumns(coordinator)
    columns.begin()
    return columns


def put(coordinator, name, lon, lat=35.5, at_ms=0):
    session = coordinator.router.session_of(name)
    session.last_place = packed(Place(lon, lat), at_ms)
    return session


def frame_of(watcher, view=VIEW):
    (found,) = [one for one in watcher.frame(view) if one is not None]
    return found.devices


def rows_of(found):
    return dict(zip(found.device_ids, found.lon.tolist(), strict=True))


def test_a_slot_that_is_used_again_has_another_number(coordinator, devices):
    watcher = Watcher(coordinator, devices, "")
    first = put(coordinator, "first", 14.1)
    (number,) = frame_of(watcher).numbers
    coordinator.router.forget_if_empty(first)
    put(coordinator, "second", 14.1)
    frame_of(watcher)  # the slot is free from now on
    put(coordinator, "third", 14.1)
    found = frame_of(watcher)
    assert found.device_ids == ["third"]
    assert number not in found.numbers
    assert devices.end == 2


def test_nothing_of_a_forgotten_device_remains(coordinator, devices):
    session = put(coordinator, "first", 14.123)
    list(devices.refresh())
    coordinator.router.forget_if_empty(session)
    list(devices.refresh())
    assert devices.device_ids == [""]
    assert not devices.lon.any()
    assert session not in devices._slot_of  # noqa: SLF001


def test_a_parked_device_has_no_row(coordinator, devices):
    watcher = Watcher(coordinator, devices, "")
    session = put(coordinator, "device", 14.1)
    (number,) = frame_of(watcher).numbers
    coordinator.router.park(session, ParkReason.SILENT)
    found = frame_of(watcher)
    assert found.removed.tolist() == [number]
    assert (found.placed_count, found.view_count) == (0, 0)


def test_a_refresh_that_ends_early_is_repeated(coordinator, devices, monkeypatch):
    monkeypatch.setattr("server.core.watching.devices._CHUNK", 2)
    for i in range(6):
        put(coordinator, f"d{i}", 14.1 + i / 100)
    steps = devices.refresh()
    next(steps)
    assert list(devices.refresh()) == [], "another watcher does not wait"
    steps.close()
    list(devices.refresh())
    assert len(devices.of_tenant("")) == 6


def test_the_columns_go_with_the_last_watcher(coordinator, devices):
    devices.begin()
    put(coordinator, "device", 14.1)
    list(devices.refresh())
    devices.finish()
    assert devices.end == 1
    devices.finish()
    assert devices.end == 0
    assert not devices.device_ids


def test_frames_with_few_rows_add_up(coordinator, devices, monkeypatch):
    """Reports come faster than rows: all of them arrive in the end, each once."""
    monkeypatch.setattr(watchers, "_ROWS_MAX", 3)
    rng = random.Random(2)
    watcher, rows, lons = Watcher(coordinator, devices, ""), {}, {}
    for turn in range(30):
        for i in rng.sample(range(12), 5):
            lons[f"d{i}"] = round(14.0 + rng.random(), 6)
            put(coordinator, f"d{i}", lons[f"d{i}"], at_ms=turn)
        found = frame_of(watcher)
        assert len(found.numbers) <= 3
        rows |= rows_of(found)
    for _ in range(12):
        rows |= rows_of(frame_of(watcher))
    assert rows == pytest.approx(lons)
    assert not frame_of(watcher).device_ids


def test_a_sample_keeps_its_numbers():
    rng = np.random.default_rng(4)
    numbers = rng.choice(10_000, 500, replace=False)
    kept = set(numbers[sample(numbers, 100)].tolist())
    assert len(kept) == 100
    fewer = np.array([one for one in numbers.tolist() if one in kept or rng.random() < 0.5])
    assert set(fewer[sample(fewer, 100)].tolist()) == kept
    assert len(sample(numbers, 500)) == 500
    assert len(sample(numbers[:0], 5)) == 0


def test_cells_add_up_and_include_the_edges():
    rng = np.random.default_rng(4)
    lon = np.concatenate([rng.uniform(14.0, 15.0, 200), [14.0, 15.0, 15.0]])
    lat = np.concatenate([rng.uniform(35.0, 36.0, 200), [35.0, 36.0, 35.0]])
    counts = cell_counts(VIEW._replace(grid=Grid(5, 3)), lon, lat)
    expected = [0] * 15
    for x, y in zip(lon.tolist(), lat.tolist(), strict=True):
        column, row = min(4, int((x - 14.0) * 5)), min(2, int((y - 35.0) * 3))
        expected[row * 5 + column] += 1
    assert counts.tolist() == expected
