"""The load: devices move, subscribe and unsubscribe, publishers publish, replace and retract.

What a fault leaves unanswered is asked again, under the same keys, until it is answered. So when the load
has come to rest, everything has either been acknowledged, and is among the published objects, or refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nearcast import GeoObject, Publisher, Reason, RefusedError, UnavailableError
from tests.chaos.crowd import EAST, KEYWORDS, NORTH, SOUTH, WEST, Crowd, Member
from tests.chaos.published_objects import Posted, PublishedObjects

_AGAIN_S = 0.05
_BATCH_MAX = 12
_TASKS_PER_PUBLISHER = 2
_OBJECTS_MAX = 600
"""Live objects of all publishers: beyond, more are retracted than published."""

_DELETED_SHARE = 0.05
"""Of the changes of subscriptions, those that delete the device."""

_Answer = TypeVar("_Answer")


class Load:
    """Everything that goes on between two audits.

    Parameters
    ----------
    crowd
        The devices.
    publishers
        Each of the tasks that share one has keys of its own.
    published
        Where what is acknowledged goes.
    lifetimes_s
        Shortest and longest life of an object; all magnitudes between are as frequent.
    """

    def __init__(
        self,
        crowd: Crowd,
        publishers: list[Publisher],
        published: PublishedObjects,
        lifetimes_s: tuple[float, float] = (60.0, 7200.0),
    ) -> None:
        self.now_ms = 0
        """Virtual time, which only advances at rest; in real time, what the server said last."""
        self.acknowledged = 0
        self.refused = 0
        self.deleted = 0
        """Devices."""
        self._crowd = crowd
        self._publishers = publishers
        self._published = published
        self._lifetimes_s = lifetimes_s
        self._chance = crowd.chance
        self._number = 0
        self._running = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._running = True
        shared = [one for one in self._publishers for _ in range(_TASKS_PER_PUBLISHER)]
        work = [self._publish(i, publisher) for i, publisher in enumerate(shared)]
        work += [self._move(), self._subscribe()]
        self._tasks = [asyncio.create_task(one) for one in work]

    async def rest(self) -> None:
        """Begin nothing more; return when all that was begun is answered."""
        self._running = False
        await asyncio.gather(*self._tasks)
        self._tasks = []

    async def abandon(self) -> None:
        """End it where it stands."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- publishers --------------------------------------------------------------------------------

    async def _publish(self, own: int, publisher: Publisher) -> None:
        while self._running:
            mine = [
                one for one in self._published.objects.values() if one.what.key.startswith(f"p{own}-")
            ]
            is_full = len(self._published.objects) > _OBJECTS_MAX
            if mine and self._chance.random() < (0.7 if is_full else 0.3):
                chosen = self._chance.choice(mine)
                by_key = self._chance.random() < 0.5
                if await self._until_answered(lambda: self._retract(publisher, chosen, by_key=by_key)):  # noqa: B023
                    self._published.retracted(chosen.object_id)
                    self.acknowledged += 1
            else:
                await self._post(own, publisher, [one.what.key for one in mine])
            await asyncio.sleep(self._chance.uniform(0.0, 0.02))

    async def _post(self, own: int, publisher: Publisher, keys: list[str]) -> None:
        """Publish a few objects; some take the place of one of the same key."""
        objects = {}
        for _ in range(self._chance.randint(1, _BATCH_MAX)):
            self._number += 1
            is_replacing = keys and self._chance.random() < 0.2
            key = self._chance.choice(keys) if is_replacing else f"p{own}-{self._number}"
            objects[key] = self._object(key)
        self._published.payloads |= {one.payload for one in objects.values()}
        now_ms = self.now_ms
        ids = await self._until_answered(lambda: publisher.publish(objects.values()))
        for one, object_id in zip(objects.values(), ids or (), strict=bool(ids)):
            self._published.posted(one, object_id, now_ms)
            self.acknowledged += 1

    def _object(self, key: str) -> GeoObject:
        chance = self._chance
        words = frozenset(chance.sample(KEYWORDS, chance.randint(1, 3)))
        lon, lat = chance.uniform(WEST, EAST), chance.uniform(SOUTH, NORTH)
        shortest_s, longest_s = self._lifetimes_s
        ttl_s = round(shortest_s * (longest_s / shortest_s) ** chance.random(), 3)
        return GeoObject(words, lon, lat, ttl_s, f"{key} {self._number}".encode(), key)

    async def _retract(self, publisher: Publisher, one: Posted, *, by_key: bool) -> bool:
        """Retract; if it is unknown, it has expired, or an earlier try has done it."""
        try:
            if by_key:
                await publisher.retract(key=one.what.key)
            else:
                await publisher.retract(one.object_id)
        except RefusedError as error:
            if error.reason is not Reason.UNKNOWN_OBJECT:
                raise
        return True

    async def _until_answered(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer | None:
        """Ask until there is an answer; None for a refusal, which has changed nothing."""
        while True:
            try:
                return await ask()
            except UnavailableError:
                await asyncio.sleep(_AGAIN_S)
            except RefusedError as error:
                if error.reason is not Reason.INTERNAL:
                    raise
                self.refused += 1
                await asyncio.sleep(_AGAIN_S)
                return None

    # -- devices -----------------------------------------------------------------------------------

    async def _move(self) -> None:
        while self._running:
            awake = [one for group in self._crowd.awake for one in group.members]
            for member in self._chance.sample(awake, max(1, len(awake) // 10)):
                if not member.is_deleted:
                    await self._crowd.move(member)
            await asyncio.sleep(0.02)

    async def _subscribe(self) -> None:
        """Begin and end subscriptions, delete a device at first and then seldom, several at a time."""
        under_way: set[asyncio.Task[None]] = set()
        has_deleted = False
        while self._running:
            member = self._chance.choice([one for group in self._crowd.awake for one in group.members])
            if not member.is_busy:
                change = self._chance.choice((self._crowd.subscribe, self._crowd.unsubscribe))
                if self._chance.random() < _DELETED_SHARE or not has_deleted:
                    change, has_deleted = self._delete, True
                member.is_busy = True
                task = asyncio.create_task(self._change(change(member), member))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            await asyncio.sleep(0.02)
        await asyncio.gather(*under_way)

    async def _delete(self, member: Member) -> None:
        """Delete a device, which begins anew: each step until it is answered."""
        for step in (self._crowd.delete, self._crowd.come_back):
            while await self._until_answered(lambda: _done(step(member))) is None:  # noqa: B023
                pass
        self.deleted += 1
        await self._crowd.subscribe(member)

    async def _change(self, change, member) -> None:
        try:
            await change
        except RefusedError as error:
            if error.reason is not Reason.INTERNAL:
                raise
            self.refused += 1
        finally:
            member.is_busy = False


async def _done(step: Awaitable[None]) -> bool:
    await step
    return True
