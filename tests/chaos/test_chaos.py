"""Every fault once, with few devices: `make chaos` is the same at length."""

from __future__ import annotations

from nearcast import RegionMode
from tests.chaos.faults import FAULTS
from tests.chaos.run import CLOCK_JUMP, run, strike
from tests.chaos.tally import Tally
from tests.chaos.world import World


def quiet(_stage, _done, _total):
    """Nobody is told."""


async def test_nothing_is_lost_and_every_list_is_right(tmp_path):
    """One fault after the other strikes the same server and devices."""
    async with World(tmp_path / "world", 12, 1) as world:
        before = Tally("none")
        for fault in FAULTS:
            tally = Tally(fault)
            await strike(world, tally, 1, quiet)
            assert (fault, tally.violations) == (fault, [])
            assert (fault, tally.injected) == (fault, 1)
            assert tally.lists > before.lists
            assert tally.commands > before.commands
            before = tally
        assert {RegionMode.ANCHORED, RegionMode.STATIONARY} <= world.modes
        assert world.load.deleted >= len(FAULTS)


async def test_nor_when_clocks_jump(tmp_path):
    (tally,) = await run({CLOCK_JUMP: 1}, tmp_path, 12, 1, quiet)
    assert tally.violations == []
    assert tally.injected == 1
    assert tally.lists > 0
    assert tally.commands > 0
