"""The faults."""

from __future__ import annotations

import asyncio

from tests.chaos.world import World


async def kill(world: World) -> None:
    """Kill the server with signal 9 at a random moment, and start it again."""
    await asyncio.sleep(world.chance.uniform(0.1, 0.8))
    world.server.kill()
    await asyncio.sleep(world.chance.uniform(0.0, 0.3))
    await world.server.start()
