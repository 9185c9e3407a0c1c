"""The feeds of a simulation whose devices are not all there from the start."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from simulator.tables import write_table
from simulator.workload.feeds import write_feeds
from simulator.workload.subscriptions import TOP_K

LATE, ABSENT = "device-000004", "device-000007"
FIRST_TICK = 20


@pytest.fixture(scope="module")
def feed(simulation, spark, tmp_path_factory):
    """Subscriptions by id, where one device appears late and another one never."""
    folder = tmp_path_factory.mktemp("feeds")
    moved = simulation.trajectories
    is_there = pc.or_(pc.greater_equal(moved["tick"], FIRST_TICK), pc.not_equal(moved["device_id"], LATE))
    kept = pc.and_(is_there, pc.not_equal(moved["device_id"], ABSENT))
    write_table(moved.filter(kept), folder / "trajectories")
    for name in ("objects", "subscriptions"):
        write_table(getattr(simulation, name), folder / name)
    write_feeds(folder, simulation.world.start_ms, spark, 30)
    (path,) = (folder / "feeds" / "subscriptions").glob("*.parquet")
    return {row["subscription_id"]: row for row in pq.read_table(path).to_pylist()}


def expected(rows):
    """The ids of subscriptions whose place is known: those that move with the absent device have none."""
    return {
        int(row["device_id"][-6:]) * 64 + row["subscription_id"]: row
        for row in rows
        if row["place"]
        or row["center"]
        or row["bounds"]
        or (row["kind"] == TOP_K and row["device_id"] != ABSENT)
    }


def test_no_subscription_with_a_place_is_lost(simulation, feed):
    assert feed.keys() == expected(simulation.subscriptions.to_pylist()).keys()


def test_subscriptions_that_move_stay_at_the_first_position(simulation, feed):
    moved = simulation.trajectories
    first = {row["device_id"]: row for row in moved.filter(pc.equal(moved["tick"], 0)).to_pylist()}
    late = moved.filter(pc.equal(moved["tick"], FIRST_TICK)).to_pylist()
    first[LATE] = next(row for row in late if row["device_id"] == LATE)
    rows = expected(simulation.subscriptions.to_pylist())
    moving = {number: row for number, row in rows.items() if row["kind"] == TOP_K and not row["place"]}
    assert LATE in {row["device_id"] for row in moving.values()}
    for number, row in moving.items():
        place = first[row["device_id"]]
        assert (feed[number]["lon"], feed[number]["lat"]) == (place["lon"], place["lat"])
