"""Faults of a cluster, each in a round of load, fault, rest and audit."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.log import LogError
from nearcast import NearcastError
from tests.chaos.audit import Unrest
from tests.chaos.cluster.audit import audit
from tests.chaos.cluster.faults import inflict
from tests.chaos.cluster.recovery import Recovery
from tests.chaos.cluster.world import ClusterWorld
from tests.chaos.tally import Tally

Progress = Callable[[str, int, int], None]

_ROUND_S = 400.0
"""A guard against waiting for ever: the longest fault takes half a minute, to come to rest as long."""
_LOST = re.compile("^lost:|was acknowledged and is lost$")
_BROKEN = (Unrest, NearcastError, LogError, RuntimeError, TimeoutError)


async def strike_cluster(
    wanted: Mapping[str, int],
    folder: Path,
    sizes: tuple[int, int],
    seed: int,
    pause_s: float,
    progress: Progress,
) -> list[Tally]:
    """Inject each fault so many times into a cluster of a number of nodes and devices."""
    tallies = []
    for number, (name, count) in enumerate(wanted.items()):
        tally = Tally(name)
        tallies.append(tally)
        try:
            async with ClusterWorld(folder / str(number), *sizes, seed, pause_s) as world:
                await _strike(world, tally, count, progress)
        except _BROKEN as error:
            tally.violations.append(f"the cluster did not start: {error!r}")
    return tallies


async def _strike(world: ClusterWorld, tally: Tally, count: int, progress: Progress) -> None:
    """Inject a fault so many times; end early if the devices do not come to rest."""
    for _ in range(count):
        began_s, before = time.perf_counter(), (world.lists, *_counts(world))
        writes, broken = world.fences.writes, ""
        try:
            async with asyncio.timeout(_ROUND_S):
                await _round(world, tally)
        except _BROKEN as error:
            broken = f"a round broke off: {error!r}; {world.last_words()}"
            world.violations.append(broken)
        after = (world.lists, *_counts(world))
        lists, commands, refused = (new - old for new, old in zip(after, before, strict=True))
        tally.lists += lists
        tally.commands += commands
        tally.refused += refused
        tally.seconds += time.perf_counter() - began_s
        tally.violations += world.violations
        tally.writes += world.fences.writes - writes
        tally.lost += sum(_LOST.search(text) is not None for text in world.violations)
        tally.stale += sum(text.startswith("stale:") for text in world.violations)
        world.violations.clear()
        progress(tally.fault, tally.injected, count)
        if broken:
            return


def _counts(world: ClusterWorld) -> tuple[int, int]:
    return world.load.acknowledged, world.load.refused


async def _round(world: ClusterWorld, tally: Tally) -> None:
    await world.all_served()
    world.load.start()
    async with Recovery(world.crowd, world.ledger) as recovery:
        await inflict(world, tally.fault, recovery)
        tally.injected += 1
        await audit(world, recovery.samples)
    if recovery.exact_s:
        tally.exact_s.append(max(recovery.exact_s.values()))
    for node in world.nodes:
        if not node.is_running:
            raise RuntimeError(f"node {node.address} has ended by itself")
