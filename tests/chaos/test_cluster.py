"""A node of a small cluster is killed once: `make chaos` is the same at length, with all faults."""

from __future__ import annotations

import pytest

from cluster.local_servers import program
from tests.chaos.cluster.run import strike_cluster

pytestmark = pytest.mark.processes

KILLED = "cluster: node killed"


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.mark.skipif(program() is None, reason="nats-server is not installed")
async def test_nothing_is_lost_when_a_node_is_killed(tmp_path):
    (tally,) = await strike_cluster({KILLED: 1}, tmp_path, (2, 12), 1, 5.0, quiet)
    assert tally.violations == []
    assert (tally.injected, tally.lost, tally.stale) == (1, 0, 0)
    assert tally.lists > 12
    assert tally.commands > 0
    assert tally.writes > 0
    assert len(tally.exact_s) == 1, "some devices were at the node"
