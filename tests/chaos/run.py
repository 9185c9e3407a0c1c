"""A run: every fault so many times, each in a round of load, fault, rest and audit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from nearcast import NearcastError
from tests.chaos import clocks
from tests.chaos.audit import Unrest
from tests.chaos.faults import FAULTS, Missed
from tests.chaos.stream_faults import STREAM_FAULTS, strike_stream
from tests.chaos.tally import Tally
from tests.chaos.world import World

KILL = "kill -9"
CLOCK_JUMP = "clock jump"
NAMES = (*FAULTS, CLOCK_JUMP, *STREAM_FAULTS)
Progress = Callable[[str, int, int], None]

_TRIES = 3
"""Rounds, for each that is asked for, in which a fault may find nothing to strike."""
_STEP_S = 60.0
"""Virtual time between two rounds, at most."""
_ROUND_S = 180.0
"""A guard against waiting for ever: a round takes seconds."""
_BROKEN = (Unrest, NearcastError, RuntimeError, TimeoutError)


async def run(
    wanted: dict[str, int], folder: Path, device_count: int, seed: int, progress: Progress
) -> list[Tally]:
    """Inject every fault as often as wanted; end a fault early if the devices do not come to rest."""
    tallies = []
    for name, count in wanted.items():
        if not count:
            continue
        tally = Tally(name)
        tallies.append(tally)
        if name in STREAM_FAULTS:
            place = folder / name.replace(" ", "-")
            await asyncio.to_thread(strike_stream, tally, count, place, seed, progress)
        elif name == CLOCK_JUMP:
            await _jump(tally, count, folder / name.replace(" ", "-"), device_count, seed, progress)
        else:
            place = folder / name.replace(" ", "-")
            async with World(place, device_count, seed) as world:
                await strike(world, tally, count, progress)
    return tallies


async def strike(world: World, tally: Tally, count: int, progress: Progress) -> None:
    """Inject a fault so many times; the tally has all that came of the world until then."""
    began = time.perf_counter()
    for _ in range(_TRIES * count):
        if tally.injected == count:
            break
        try:
            async with asyncio.timeout(_ROUND_S):
                await _round(world, tally)
        except _BROKEN as error:
            world.violations.append(f"a round broke off: {error!r}; {world.server.last_words()}")
            break
        finally:
            _count(world, tally, began)
        progress(tally.fault, tally.injected, count)


async def _round(world: World, tally: Tally) -> None:
    await world.advance(world.chance.uniform(1.0, _STEP_S))
    world.load.start()
    try:
        await FAULTS[tally.fault](world)
        tally.injected += 1
    except Missed:
        pass
    await world.audit()


async def _jump(
    tally: Tally, count: int, folder: Path, device_count: int, seed: int, progress: Progress
) -> None:
    began = time.perf_counter()
    world = World(folder, device_count, seed, clocks.LIFETIMES_S, virtual_time=False)
    async with world, clocks.watched(world):
        for _ in range(count):
            try:
                async with asyncio.timeout(_ROUND_S):
                    world.load.start()
                    await clocks.clock_jump(world)
                    tally.injected += 1
                    await clocks.audit(world)
            except _BROKEN as error:
                world.violations.append(f"a round broke off: {error!r}; {world.server.last_words()}")
                break
            finally:
                _count(world, tally, began)
            progress(tally.fault, tally.injected, count)


def _count(world: World, tally: Tally, began: float) -> None:
    tally.lists = world.lists
    tally.commands = world.load.acknowledged
    tally.refused = world.load.refused
    tally.violations = world.violations
    tally.seconds = time.perf_counter() - began
