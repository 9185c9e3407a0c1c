"""Clock jumps, in real time: the server's wall clock leaps; time must neither run back nor stand still.

Here expiry is what is at stake, so many objects live for seconds only. Nobody but the server knows the
instant at which an object was accepted; the audit takes it from the store, which must agree with the
lifetime that was asked for and with the time before the question.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from nearcast import ServerState, UnavailableError
from safe_region import oracle
from server.store import opening, reading
from tests.chaos.audit import Unrest, audit_subscriptions
from tests.chaos.crowd import Member
from tests.chaos.world import World

LIFETIMES_S = (1.0, 7200.0)
_FURTHEST_S = 7200.0
_PATIENCE_S = 60.0
"""A guard against waiting for ever: lists are right within moments."""


async def clock_jump(world: World) -> None:
    """Let the wall clock leap, ahead or back, by up to two hours; sometimes while the server is down."""
    chance = world.chance
    await asyncio.sleep(chance.uniform(0.1, 0.8))
    leap_s = chance.uniform(1.0, _FURTHEST_S)
    is_restarted = chance.random() < 0.3
    if is_restarted:
        world.server.kill()
    if chance.random() < 0.5:
        world.clock_offset_s += leap_s
        world.server.bend(clock_offset_s=world.clock_offset_s)
    else:
        world.server.bend(clock_offset_s=world.clock_offset_s - leap_s)
    if is_restarted:
        await world.server.start()
    await asyncio.sleep(chance.uniform(0.1, 0.8))


@contextlib.asynccontextmanager
async def watched(world: World) -> AsyncIterator[None]:
    """Look at the server's time again and again, whenever it knows it: it never runs back."""
    watching = asyncio.create_task(_watch(world))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(world: World) -> None:
    while True:
        with contextlib.suppress(UnavailableError):
            await _look(world)
        await asyncio.sleep(0.02)


async def _look(world: World) -> int:
    before_ms = world.load.now_ms
    status = await world.admin.status()
    if status.state is ServerState.RECOVERING:
        return before_ms
    time_ms = status.time_ms
    if time_ms < before_ms:
        world.violations.append(f"time ran back from {before_ms} to {time_ms}")
    world.load.now_ms = max(world.load.now_ms, time_ms)
    return time_ms


async def audit(world: World) -> None:
    """Wait until every list has been the oracle's, at one moment, of what the store holds.

    Raises
    ------
    Unrest
        If one is not.
    """
    await world.rest()
    audit_subscriptions(world.server, world.crowd, world.violations)
    waiting = [(member, number) for member in world.crowd.members for number in member.specs]
    wrong: list[str] = []
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while waiting:
                before_ms = await _look(world)
                candidates = _candidates(world, before_ms)
                shown = [_shown(*one) for one in waiting]
                after_ms = await _look(world)
                if any(before_ms < one.expiry_ms <= after_ms for one in candidates):
                    continue
                wrong.clear()
                left = []
                for (member, number), found in zip(waiting, shown, strict=True):
                    place = (member.specs[number], member.lon, member.lat)
                    expected = world.published.expected(*place, before_ms, candidates)
                    world.lists += found == expected
                    if found != expected:
                        left.append((member, number))
                        wrong.append(f"{member.device.id}/{number} shows {found}, must show {expected}")
                waiting = left
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Unrest(f"lists do not become right: {wrong[:3]}") from None


def _shown(member: Member, number: int) -> list[int] | None:
    subscription = member.subscription(number)
    return None if subscription is None else [match.object.id for match in subscription.results()]


def _candidates(world: World, now_ms: int) -> list[oracle.OracleObject]:
    """Read what is alive; all that was acknowledged and cannot have expired is there, nothing else is."""
    published, path = world.published, str(world.server.store)
    found = []
    with contextlib.closing(opening.connected(path, read_only=True)) as database:
        database.execute("BEGIN")
        for columns in reading.objects(database, path, now_ms):
            times = zip(columns.ids, columns.created_ms, columns.expiry_ms, strict=True)
            for object_id, created_ms, expiry_ms in ((int(a), int(b), int(c)) for a, b, c in times):
                posted = published.objects.get(object_id)
                if posted is None:
                    world.violations.append(f"object {object_id} is on disk and should not be")
                    continue
                if expiry_ms - created_ms != round(posted.what.ttl_s * 1000):
                    world.violations.append(f"object {object_id} lives {expiry_ms - created_ms} ms")
                if created_ms < posted.created_ms:
                    world.violations.append(f"object {object_id} is older than its publication")
                place = published.frame.project(posted.what.lon, posted.what.lat)
                words = frozenset(posted.what.keywords)
                found.append(oracle.OracleObject(object_id, *place, words, created_ms, expiry_ms))
    alive = {one.object_id for one in found}
    for one in published.objects.values():
        if one.expiry_ms > now_ms and one.object_id not in alive:
            world.violations.append(f"object {one.object_id} is acknowledged and not on disk")
    return found
