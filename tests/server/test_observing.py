"""A server whose subscription index learns from objects sees those of before, and after a restart."""

from __future__ import annotations

import pytest

import nearcast
from engine.contracts import TOP_K
from index.published.sq_tree import SqTree
from index.published.sq_tree.layout import ROOT
from server.main import Server
from server.settings import load_settings
from tests.support.servers import serving

pytestmark = pytest.mark.published
LON, LAT = 14.5, 35.5
OBJECTS = 40


def tree_of(server: Server) -> SqTree:
    tree = server.coordinator.matching.engine.matchers[TOP_K].tables.indexes.alike
    assert isinstance(tree, SqTree)
    return tree


async def test_an_sq_tree_has_seen_the_objects_that_were_there_first(tmp_path):
    settings = load_settings(
        {
            "area": "14,35,15,36",
            "store": str(tmp_path / "store.db"),
            "port": 0,
            "subscription_index": "sq-tree",
        }
    )
    async with serving(settings) as server, nearcast.connect(f"127.0.0.1:{server.port}") as client:
        words = [["tea"] if number % 4 else ["tea", "cake"] for number in range(OBJECTS)]
        await client.publisher().publish(
            [nearcast.GeoObject(some, LON + i * 1e-4, LAT, ttl_s=3_600) for i, some in enumerate(words)]
        )
        assert tree_of(server).seen_count == OBJECTS
        async with await client.attach("walker", lon=LON, lat=LAT) as device:
            await device.subscribe(nearcast.TopK({"tea", "cake"}, k=2))
            await client.sync()
        # Every object has tea, a quarter have cake: E[i_n] = 1.25.
        assert tree_of(server)._tree().nodes["common"][ROOT] == 1.25  # noqa: SLF001 - what it has learned is in its arrays
    async with serving(settings) as server:
        assert tree_of(server).seen_count == OBJECTS
