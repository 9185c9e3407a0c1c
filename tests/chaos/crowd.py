"""Hundreds of devices: some alone on their connection, most in fleets, half of them behind a proxy."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import nearcast
from nearcast import Client, Device, Subscription, TopK
from tests.chaos.books import Books
from tests.chaos.watch import Watch

KEYWORDS = ("sushi", "tea", "books", "shoes", "music", "bread", "film", "wine", "bikes", "toys")
WEST, SOUTH, EAST, NORTH = 14.3, 35.4, 14.6, 35.65
"""Where everybody is: some 27 km by 28 km in the middle of the service area."""

_ALONE_EVERY = 10
"""One device in so many has a connection of its own."""
_FLEETS = 4
_STEP_DEG = 0.004
"""How far a device goes in a move, at most: some 400 m."""
_SUBSCRIPTIONS_MAX = 3


@dataclass(slots=True)
class Member:
    """One device, where it truly is, and what it has subscribed to, by number."""

    device: Device
    watch: Watch
    lon: float
    lat: float
    specs: dict[int, TopK] = field(default_factory=dict)
    is_busy: bool = False
    """Whether it begins or ends a subscription just now."""

    def subscription(self, number: int) -> Subscription | None:
        return next((one for one in self.device.subscriptions if one.id == number), None)


@dataclass(slots=True)
class Group:
    """The devices of one connection."""

    client: Client
    is_far: bool
    members: list[Member] = field(default_factory=list)
    is_asleep: bool = False


class Crowd:
    """All devices.

    Parameters
    ----------
    books
        What has been published.
    violations
        Where watches write.
    chance
        Decides everything.
    """

    def __init__(self, books: Books, violations: list[str], chance: random.Random) -> None:
        self.groups: list[Group] = []
        self.chance = chance
        self._books = books
        self._violations = violations
        self._stack = AsyncExitStack()

    @property
    def members(self) -> list[Member]:
        return [one for group in self.groups for one in group.members]

    @property
    def awake(self) -> list[Group]:
        return [group for group in self.groups if not group.is_asleep]

    async def gather(self, count: int, near: str, far: str) -> None:
        """Attach devices, half of them by the way of `far`, and let each subscribe once at least."""
        alone = max(2, count // _ALONE_EVERY)
        names = [f"d{i}" for i in range(count)]
        for i, name in enumerate(names[:alone]):
            client = await self._connect(far if i % 2 else near)
            group = Group(client, bool(i % 2))
            self.groups.append(group)
            await self._attach(group, client.attach, name)
        for i in range(_FLEETS):
            client = await self._connect(far if i % 2 else near)
            group = Group(client, bool(i % 2))
            self.groups.append(group)
            fleet = await self._stack.enter_async_context(client.fleet())
            for name in names[alone + i :: _FLEETS]:
                await self._attach(group, fleet.attach, name)
        await asyncio.gather(*(self.subscribe(member) for member in self.members))

    async def leave(self) -> None:
        await self._stack.aclose()

    def move(self, member: Member) -> None:
        """Choose where a device goes next: a step, seldom another part of town."""
        chance = self.chance
        if chance.random() < 0.02:
            member.lon, member.lat = chance.uniform(WEST, EAST), chance.uniform(SOUTH, NORTH)
        else:
            member.lon += chance.uniform(-_STEP_DEG, _STEP_DEG)
            member.lat += chance.uniform(-_STEP_DEG, _STEP_DEG)

    async def subscribe(self, member: Member) -> None:
        """Begin a subscription, unless there are enough; one that is refused has never been."""
        if len(member.specs) >= _SUBSCRIPTIONS_MAX:
            return
        chance = self.chance
        words = frozenset(chance.sample(KEYWORDS, chance.randint(1, 3)))
        spec = TopK(words, chance.randint(1, 10), chance.choice((0.3, 0.7, 0.95)))
        subscription = await member.device.subscribe(spec)
        member.specs[subscription.id] = spec

    async def unsubscribe(self, member: Member) -> None:
        """End a subscription, unless it is the last."""
        if len(member.specs) < 2:
            return
        number = self.chance.choice(list(member.specs))
        subscription = member.subscription(number)
        del member.specs[number]
        member.watch.ending(number)
        if subscription is not None:
            await subscription.unsubscribe()

    async def _connect(self, target: str) -> Client:
        return await self._stack.enter_async_context(nearcast.connect(target))

    async def _attach(self, group: Group, attach, name: str) -> None:
        lon, lat = self.chance.uniform(WEST, EAST), self.chance.uniform(SOUTH, NORTH)
        device = await attach(name, lon=lon, lat=lat)
        group.members.append(Member(device, Watch(device, self._books, self._violations), lon, lat))
