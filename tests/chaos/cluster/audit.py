"""At rest: lists, acknowledged objects and subscriptions, and owners of writes, beside the log."""

from __future__ import annotations

import asyncio
from collections import Counter

from nearcast import NearcastError
from tests.chaos.audit import audit_lists, audit_searches, settle
from tests.chaos.cluster.recovery import Sample
from tests.chaos.cluster.world import WINDOWS, ClusterWorld

_PATIENCE_S = 120.0
"""A guard against waiting for ever: devices wait up to some five seconds between two attempts."""
_QUIET_MS = 1_500
"""Clocks of devices differ by moments: no list changes with time so shortly before or after an audit."""


async def audit(world: ClusterWorld, samples: list[Sample]) -> None:
    """Come to rest and compare everything.

    Raises
    ------
    Unrest
        If the devices do not come to rest.
    """
    await world.load.rest()
    now_ms = await _rest(world)
    published, wrong = world.published, world.violations
    published.now_ms, published.latest_id = now_ms, len(world.ledger.objects)
    world.lists += audit_lists(world.crowd, published, now_ms, wrong)
    await audit_searches(world.client, world.crowd, published, now_ms, wrong)
    _audit_samples(world, samples)
    _audit_objects(world, now_ms)
    _audit_subscriptions(world)
    wrong += [f"stale: {text}" for text in world.fences.stale]
    world.fences.stale.clear()
    published.begin(now_ms)


async def _rest(world: ClusterWorld) -> int:
    """Wait for a moment at which nothing is under way and no list changes with time; return it."""
    clock = world.crowd.groups[0].client.clock
    while True:
        since_ms = clock.now_ms() - _QUIET_MS
        await settle(world.crowd, _PATIENCE_S, (NearcastError,))
        await asyncio.gather(world.ledger.caught_up(), world.fences.caught_up())
        now_ms = clock.now_ms()
        if not any(since_ms < one < now_ms + _QUIET_MS for one in _changes_ms(world, since_ms)):
            return now_ms
        await asyncio.sleep(0.05)


def _changes_ms(world: ClusterWorld, since_ms: int) -> list[int]:
    """Return when objects expire or leave a window."""
    objects = [one for one in world.ledger.objects if one.expiry_ms > since_ms]
    windows_ms = [round(window.seconds * 1000) for window in WINDOWS if window.seconds is not None]
    return [
        *(one.expiry_ms for one in objects),
        *(one.created_ms + window_ms for one in objects for window_ms in windows_ms),
    ]


# -- lists during the fault ------------------------------------------------------------------------


def _audit_samples(world: ClusterWorld, samples: list[Sample]) -> None:
    """Require that each list that was called exact is that of the log up to some late entry."""
    for one in samples:
        world.lists += 1
        if not _is_of_some_state(world, one):
            world.violations.append(f"{one.name} showed {one.shown} as exact, which it was at no entry")


def _is_of_some_state(world: ClusterWorld, one: Sample) -> bool:
    published = world.published
    for state, published.latest_id in world.ledger.states(one.shown, one.oldest, one.entry, one.now_ms):
        found = published.expected(one.spec, one.lon, one.lat, one.now_ms, world.ledger.plain(state))
        if found == one.shown:
            return True
    return False


# -- what was acknowledged -------------------------------------------------------------------------


def _audit_objects(world: ClusterWorld, now_ms: int) -> None:
    """Require that the log has what was acknowledged, and nothing else.

    A request whose outcome was unknown is repeated at another node, and the first one may be carried out
    later. Then the log has its object twice.
    """
    ledger, published = world.ledger, world.published
    counts = Counter(one.new.payload for one in ledger.objects)
    late = {one.new.key for one in ledger.objects if counts[one.new.payload] > 1}
    world.late = sum(count - 1 for count in counts.values())
    for object_id, what in published.acknowledged.items():
        found = ledger.objects[object_id - 1].new if object_id <= len(ledger.objects) else None
        if found is None or (found.payload, found.key) != (what.payload, what.key):
            world.violations.append(f"lost: object {object_id}, {what.key}, is acknowledged")
    expected = {key for key, one in published.objects.items() if one.what.key not in late}
    alive = ledger.alive(now_ms)
    found = {one.object_id for one in alive if one.new.key not in late}
    for object_id in expected - found:
        if ledger.objects[object_id - 1].expiry_ms > now_ms:
            world.violations.append(f"lost: object {object_id} is acknowledged and has ended")
    for object_id in found - expected:
        world.violations.append(f"object {object_id} is in the log and is not acknowledged")


def _audit_subscriptions(world: ClusterWorld) -> None:
    stored = world.fences.subscriptions
    expected = {(member.device.id, number) for member in world.crowd.members for number in member.specs}
    world.violations.extend(
        f"lost: subscription {one} is acknowledged and not stored" for one in expected - stored
    )
    world.violations.extend(
        f"subscription {one} is stored and should not be" for one in stored - expected
    )
