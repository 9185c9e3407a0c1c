"""The faults that strike a world in virtual time, each in the middle of its load.

Each returns once what it did is over: the server is up, the disk has room, connections flow. A fault that
found nothing to strike raises `Missed`, and is not counted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from tests.chaos.audit import settle
from tests.chaos.tamper import Tamper
from tests.chaos.torn import tear
from tests.chaos.world import World

_HOUR_S = 3600.0
_HOUR_STEPS = 12
"""Five minutes a step: who is awake gives signs of life in time, who is asleep loses its lease."""
_NOTICED_S = 20.0
"""A guard against waiting for ever for what the load runs into within moments."""


class Missed(Exception):  # noqa: N818 - not an error
    """There was nothing to strike."""


async def kill(world: World) -> None:
    """Kill the server with signal 9 at a random moment, and start it again."""
    await _let_it_run(world)
    world.server.kill()
    await asyncio.sleep(world.chance.uniform(0.0, 0.3))
    await world.server.start()


async def torn_write(world: World) -> None:
    """Kill it, and damage what follows the last commit in its log."""
    await _let_it_run(world)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_NOTICED_S):
            while not world.server.log_of_store.stat().st_size:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
    world.server.kill()
    how = tear(world.server.log_of_store, world.chance)
    await world.server.start()
    if not how:
        raise Missed("the log was empty")


async def pause(world: World) -> None:
    """Stop the process with SIGSTOP; let it go on with SIGCONT."""
    await _let_it_run(world)
    world.server.pause()
    await asyncio.sleep(world.chance.uniform(0.2, 1.5))
    world.server.go_on()


async def full_disk(world: World) -> None:
    """Let no file of the server grow any more, until commands have been refused."""
    await _let_it_run(world)
    room = world.chance.randrange(20_000)
    world.server.limit_files(world.server.log_of_store.stat().st_size + room)
    try:
        async with asyncio.timeout(_NOTICED_S):
            before = world.load.refused
            while world.load.refused < before + world.chance.randint(1, 10):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise Missed("nothing was refused") from None
    finally:
        world.server.limit_files(None)


async def slow_disk(world: World) -> None:
    """Let every commit take longer, by up to half a second."""
    await _let_it_run(world)
    world.server.bend(commit_delay_s=world.chance.uniform(0.05, 0.5))
    await asyncio.sleep(world.chance.uniform(0.5, 2.0))
    world.server.bend()


async def cut(world: World) -> None:
    """Break the connections that go through the proxy, several times, some while it refuses new ones."""
    for _ in range(world.chance.randint(1, 3)):
        await _let_it_run(world)
        for proxy in world.proxies:
            proxy.is_open = world.chance.random() < 0.5
            proxy.cut()
        await asyncio.sleep(world.chance.uniform(0.0, 0.3))
        for proxy in world.proxies:
            proxy.is_open = True


async def stall(world: World) -> None:
    """Let nothing through for a while; half of the times the connections break then."""
    await _let_it_run(world)
    for proxy in world.proxies:
        proxy.stall()
    await asyncio.sleep(world.chance.uniform(0.3, 2.0))
    is_broken = world.chance.random() < 0.5
    for proxy in world.proxies:
        (proxy.cut if is_broken else proxy.resume)()


async def slow_network(world: World) -> None:
    """Let everything through the proxy take up to a tenth of a second longer."""
    for proxy in world.proxies:
        proxy.delay_s = world.chance.uniform(0.01, 0.1)
    await _let_it_run(world)
    await _let_it_run(world)
    for proxy in world.proxies:
        proxy.delay_s = 0.0


async def duplicated_reports(world: World) -> None:
    """Send every second report twice, and some again when they are out of date."""
    await _tamper(world, 0.0)


async def delayed_reports(world: World) -> None:
    """Send every second report up to half a second late, in order, and some again when out of date."""
    await _tamper(world, 0.5)


async def sleep(world: World) -> None:
    """Let devices sleep for an hour of virtual time: nothing reaches them, and nothing is heard of them.

    Their leases end meanwhile, objects come and go. Half of the times they wake on another connection.
    """
    await world.load.rest()
    await settle(world.crowd)
    sleepers = [group for group in world.crowd.groups if group.is_far]
    for group in sleepers:
        group.is_asleep = True
    world.devices_proxy.stall()
    for _ in range(_HOUR_STEPS):
        await world.advance(_HOUR_S / _HOUR_STEPS)
        world.load.start()
        await asyncio.sleep(world.chance.uniform(0.0, 0.1))
        await world.load.rest()
    (world.devices_proxy.cut if world.chance.random() < 0.5 else world.devices_proxy.resume)()
    for group in sleepers:
        group.is_asleep = False
    world.load.start()
    await world.wake(sleepers)


FAULTS: dict[str, Callable[[World], Awaitable[None]]] = {
    "kill -9": kill,
    "torn last write": torn_write,
    "SIGSTOP": pause,
    "full disk": full_disk,
    "slow disk": slow_disk,
    "connections cut": cut,
    "connections stalled": stall,
    "slow network": slow_network,
    "reports twice": duplicated_reports,
    "reports late": delayed_reports,
    "asleep an hour": sleep,
}


async def _tamper(world: World, late_s: float) -> None:
    tampers = [Tamper(member, world.chance, late_s) for member in world.crowd.members]
    try:
        async with asyncio.timeout(_NOTICED_S):
            while sum(one.count for one in tampers) < len(tampers) // 10:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Missed("too few devices had anything to report") from None
    finally:
        for one in tampers:
            one.stop()


async def _let_it_run(world: World) -> None:
    """Strike at a random moment of the load."""
    await asyncio.sleep(world.chance.uniform(0.1, 0.8))
