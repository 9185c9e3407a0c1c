"""At rest: what the server has, on disk and in memory, what devices show, and what was published."""

from __future__ import annotations

import asyncio
import contextlib

from nearcast import Client, NearcastError, SubscriptionState, TopK, UnavailableError
from server.store import opening, reading
from tests.chaos.crowd import EAST, KEYWORDS, NORTH, SOUTH, WEST, Crowd
from tests.chaos.published_objects import PublishedObjects
from tests.chaos.servers import ServerProcess

_PATIENCE_S = 60.0
"""A guard against waiting for ever: rest comes within a second or two of a server's return."""
_SEARCHES = 5


class Unrest(Exception):  # noqa: N818 - what is wrong, for a sentence
    """The devices do not come to rest."""


async def settle(
    crowd: Crowd,
    patience_s: float = _PATIENCE_S,
    passing: tuple[type[NearcastError], ...] = (UnavailableError,),
) -> None:
    """Wait until every device is attached, nothing is under way, and every list says that it is exact.

    The end of a subscription is under way until the server has confirmed it, also after a refusal.

    Parameters
    ----------
    crowd
        The devices.
    patience_s
        A guard against waiting for ever.
    passing
        Errors after which it tries again.

    Raises
    ------
    Unrest
        If that does not happen.
    """
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    _give_signs_of_life(crowd)
                    for _ in range(2):  # after the first they have their answers, and have acted on them
                        await asyncio.gather(*(group.client.sync() for group in crowd.awake))
                except passing:
                    await asyncio.sleep(0.05)
                    continue
                if not _restless(crowd):
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise Unrest(f"no rest within {patience_s:.0f} s: {_restless(crowd)[:5]}") from None


def _give_signs_of_life(crowd: Crowd) -> None:
    """Let devices that were refused the end of a subscription ping, as all do in time, and ask again."""
    for member in (one for group in crowd.awake for one in group.members):
        session = member.device._session
        if session.is_online and session.registry._refused_ids:
            session.ping(lambda: None)


def _restless(crowd: Crowd) -> list[str]:
    members = [member for group in crowd.awake for member in group.members]
    inexact = [
        f"{member.device.id}/{one.id} is {one.state.value}"
        for member in members
        for one in member.device.subscriptions
        if one.state is not SubscriptionState.EXACT
    ]
    ending = [
        f"{member.device.id}/{number} has yet to end"
        for member in members
        for number in member.device._session.registry.ended_ids
    ]
    return inexact + ending


def audit_lists(crowd: Crowd, published: PublishedObjects, now_ms: int, violations: list[str]) -> int:
    """Compare every list with the oracle's; return how many."""
    candidates = published.candidates()
    count = 0
    for member in (one for group in crowd.awake for one in group.members):
        found = {one.id: one for one in member.device.subscriptions}
        name = member.device.id
        if found.keys() != member.specs.keys():
            violations.append(f"{name} has subscriptions {sorted(found)}, not {sorted(member.specs)}")
        for number, spec in member.specs.items():
            if number not in found:
                continue
            count += 1
            shown = [match.object.id for match in found[number].results()]
            expected = published.expected(spec, member.lon, member.lat, now_ms, candidates)
            if shown != expected:
                violations.append(f"{name}/{number} shows {shown}, must show {expected}")
    return count


async def audit_searches(
    client: Client, crowd: Crowd, published: PublishedObjects, now_ms: int, violations: list[str]
) -> None:
    """Ask the server itself for the hundred best at a few places."""
    candidates = published.candidates()
    for _ in range(_SEARCHES):
        spec = TopK(frozenset(KEYWORDS), 100, 0.5)
        lon, lat = crowd.chance.uniform(WEST, EAST), crowd.chance.uniform(SOUTH, NORTH)
        shown = [match.object.id for match in await client.search(spec, lon=lon, lat=lat)]
        if shown != published.expected(spec, lon, lat, now_ms, candidates):
            violations.append(f"a search at {lon}, {lat} finds {shown}")


def audit_objects(
    server: ServerProcess, published: PublishedObjects, now_ms: int, violations: list[str]
) -> None:
    """Read the store beside the running server: what was acknowledged is there, and nothing else."""
    path = str(server.store)
    with contextlib.closing(opening.connected(path, read_only=True)) as database:
        database.execute("BEGIN")  # of one moment
        stored = {}
        for columns in reading.objects(database, path, now_ms):
            rows = zip(columns.ids, columns.keys, columns.payloads, columns.expiry_ms, strict=True)
            stored |= {int(one): (key, payload, int(expiry)) for one, key, payload, expiry in rows}
    expected = {
        one.object_id: (one.what.key, one.what.payload, one.expiry_ms)
        for one in published.objects.values()
    }
    for text, difference in (
        ("is acknowledged and not as it was", expected.items() - stored.items()),
        ("is on disk and should not be", stored.items() - expected.items()),
    ):
        violations.extend(f"object {one} {text}" for one, _ in difference)


def audit_subscriptions(server: ServerProcess, crowd: Crowd, violations: list[str]) -> None:
    """Read the store beside the running server: all subscriptions are there, and no others."""
    path = str(server.store)
    kept = set()
    with contextlib.closing(opening.connected(path, read_only=True)) as database:
        database.execute("BEGIN")
        for columns in reading.subscriptions(database, path):
            kept |= set(zip(columns.device_ids, map(int, columns.subscription_ids), strict=True))
    wanted = {(member.device.id, number) for member in crowd.members for number in member.specs}
    violations.extend(f"subscription {one} is acknowledged and not on disk" for one in wanted - kept)
    violations.extend(f"subscription {one} is on disk and should not be" for one in kept - wanted)
