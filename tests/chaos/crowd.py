"""Hundreds of devices: some alone on their connection, most in fleets, half of them behind a proxy.

Every sixth is private, every sixth has poor fixes, every sixth reports ahead of the edge of its region,
every sixth stays where it is, and its top-k subscriptions stand there. Of the subscriptions of the others
that are known exactly some are in the mode ELLIPSE and some stand though the device moves. Some that are
not in the modes ELLIPSE and NEAREST have a window.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

import nearcast
from nearcast import (
    Boolean,
    Bounds,
    Circle,
    Clause,
    Client,
    Device,
    Last,
    Rectangle,
    RegionMode,
    Spec,
    Subscription,
    TopK,
)
from tests.chaos.published_objects import PublishedObjects
from tests.chaos.watch import Watch

KEYWORDS = ("sushi", "tea", "published", "shoes", "music", "bread", "film", "wine", "bikes", "toys")
WEST, SOUTH, EAST, NORTH = 14.3, 35.4, 14.6, 35.65
"""Where everybody is: some 27 km by 28 km in the middle of the service area."""

_ALONE_EVERY = 10
"""One device in so many has a connection of its own."""
_FLEETS = 4
_STEP_DEG = 0.004
"""How far a device goes in a move, at most: some 400 m."""
_SUBSCRIPTIONS_MAX = 3

_ASKED_SHARE = 0.2
_STATIONARY_SHARE = 0.1
_WINDOW_SHARE = 0.3
WINDOWS = (Last(seconds=2.0), Last(seconds=20.0), Last(count=5), Last(count=50))
_BOOLEAN_SHARE = 0.25
_SPEED_MAX_MPS = 30.0


@dataclass(frozen=True, slots=True)
class Habit:
    """How a device goes about its position, in metres."""

    privacy_radius_m: float = 0.0
    accuracy_m: float = 0.0
    prefetch_m: float = 0.0
    stays: bool = False

    @property
    def is_exact(self) -> bool:
        return self.privacy_radius_m == self.accuracy_m == 0.0


_HABITS = (
    Habit(),
    Habit(),
    Habit(prefetch_m=100.0),
    Habit(accuracy_m=40.0),
    Habit(privacy_radius_m=200.0),
    Habit(stays=True),
)


@dataclass(slots=True)
class Member:
    """One device, where it truly is, and what it has subscribed to, by number."""

    device: Device
    watch: Watch
    habit: Habit
    lon: float
    lat: float
    specs: dict[int, Spec] = field(default_factory=dict)
    is_busy: bool = False
    """Whether it begins or ends a subscription just now."""
    is_deleted: bool = False
    """Whether it is being deleted, and not yet back."""

    def subscription(self, number: int) -> Subscription | None:
        return next((one for one in self.device.subscriptions if one.id == number), None)


@dataclass(slots=True)
class Group:
    """The devices of one connection."""

    client: Client
    attach: Callable[..., Awaitable[Device]]
    is_far: bool
    members: list[Member] = field(default_factory=list)
    is_asleep: bool = False


class Crowd:
    """All devices.

    Parameters
    ----------
    published
        What has been published.
    violations
        Where watches write.
    chance
        Decides everything.
    windows
        What windows there are.
    """

    def __init__(
        self,
        published: PublishedObjects,
        violations: list[str],
        chance: random.Random,
        windows: Sequence[Last] = WINDOWS,
    ) -> None:
        self.groups: list[Group] = []
        self.chance = chance
        self._published = published
        self._violations = violations
        self._windows = windows
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
        for i in range(alone):
            client = await self._connect(far if i % 2 else near)
            group = Group(client, client.attach, bool(i % 2))
            self.groups.append(group)
            await self._attach(group, i)
        for i in range(_FLEETS):
            client = await self._connect(far if i % 2 else near)
            fleet = await self._stack.enter_async_context(client.fleet())
            group = Group(client, fleet.attach, bool(i % 2))
            self.groups.append(group)
            for number in range(alone + i, count, _FLEETS):
                await self._attach(group, number)
        await asyncio.gather(*(self.subscribe(member) for member in self.members))

    async def leave(self) -> None:
        await self._stack.aclose()

    async def move(self, member: Member) -> None:
        """Let a device go a step, seldom to another part of town, unless it stays."""
        chance = self.chance
        if member.habit.stays:
            return
        if chance.random() < 0.02:
            member.lon, member.lat = chance.uniform(WEST, EAST), chance.uniform(SOUTH, NORTH)
        else:
            member.lon += chance.uniform(-_STEP_DEG, _STEP_DEG)
            member.lat += chance.uniform(-_STEP_DEG, _STEP_DEG)
        await member.device.move(
            member.lon,
            member.lat,
            accuracy_m=chance.random() * member.habit.accuracy_m,
            heading_deg=chance.uniform(0.0, 360.0),
            speed_mps=chance.uniform(0.0, _SPEED_MAX_MPS),
        )

    async def subscribe(self, member: Member) -> None:
        """Begin a subscription, unless there are enough; one that is refused has never been."""
        if len(member.specs) >= _SUBSCRIPTIONS_MAX:
            return
        chance = self.chance
        words = frozenset(chance.sample(KEYWORDS, chance.randint(1, 3)))
        is_asked = member.habit.is_exact and chance.random() < _ASKED_SHARE
        is_first = member.habit.stays and not member.specs  # one that stands, however few devices
        spec: Spec
        if chance.random() < _BOOLEAN_SHARE and not is_first:
            spec = self._boolean(member, words, is_asked=is_asked)
        else:
            region = self._region(member.habit, is_asked=is_asked)
            spec = TopK(words, chance.randint(1, 10), chance.choice((0.3, 0.7, 0.95)), region=region)
        if (
            spec.region in {RegionMode.ANCHORED, RegionMode.STATIONARY}
            and chance.random() < _WINDOW_SHARE
        ):
            spec = replace(spec, window=chance.choice(self._windows))
        subscription = await member.device.subscribe(spec)
        member.specs[subscription.id] = spec

    def _region(self, habit: Habit, *, is_asked: bool) -> RegionMode:
        """Draw the mode of a top-k subscription; one that stands needs to know exactly where."""
        if habit.stays or (habit.is_exact and self.chance.random() < _STATIONARY_SHARE):
            return RegionMode.STATIONARY
        return RegionMode.ELLIPSE if is_asked else RegionMode.ANCHORED

    def _boolean(self, member: Member, words: frozenset[str], *, is_asked: bool) -> Boolean:
        """Draw a boolean subscription, whose range moves or is fixed about where the device is."""
        chance = self.chance
        radius_m = chance.choice((300.0, 3_000.0))
        kind = chance.choice(("moving", "moving", "circle", "rectangle"))
        if kind == "moving":
            region = RegionMode.NEAREST if is_asked else RegionMode.ANCHORED
            where = chance.choice((Circle(radius_m), Rectangle(radius_m, 2.0 * radius_m)))
            return Boolean(words, where, moving=True, region=region)
        lon, lat = member.lon, member.lat
        first, *rest = sorted(words)
        clauses = (Clause(frozenset({first}), frozenset(rest)), Clause(words))
        if kind == "circle":
            return Boolean(clauses, Circle(radius_m, (lon, lat)))
        size_deg = radius_m / 100_000.0
        return Boolean(clauses, Bounds(lon - size_deg, lat - size_deg, lon + size_deg, lat + size_deg))

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

    async def delete(self, member: Member) -> None:
        """Let a device be deleted; again if the reply is lost, which says nothing of what was done."""
        member.is_deleted = True
        member.watch.deleting()
        group = next(one for one in self.groups if member in one.members)
        await group.client.forget_device(member.device.id)
        member.specs.clear()

    async def come_back(self, member: Member) -> None:
        """Attach a device that was deleted, as a new one: it must have no subscriptions."""
        group = next(one for one in self.groups if member in one.members)
        member.device = await self._attached(
            group, member.device.id, member.habit, member.lon, member.lat
        )
        for one in member.device.subscriptions:
            self._violations.append(f"{member.device.id} was deleted, and subscription {one.id} is back")
        member.watch = Watch(member.device, self._published, self._violations)
        member.is_deleted = False

    async def _attach(self, group: Group, number: int) -> None:
        habit = _HABITS[number % len(_HABITS)]
        lon, lat = self.chance.uniform(WEST, EAST), self.chance.uniform(SOUTH, NORTH)
        device = await self._attached(group, f"d{number}", habit, lon, lat)
        watch = Watch(device, self._published, self._violations)
        group.members.append(Member(device, watch, habit, lon, lat))

    async def _attached(
        self, group: Group, device_id: str, habit: Habit, lon: float, lat: float
    ) -> Device:
        return await group.attach(
            device_id,
            lon=lon,
            lat=lat,
            accuracy_m=habit.accuracy_m,
            privacy_radius_m=habit.privacy_radius_m,
            prefetch_m=habit.prefetch_m,
            rng=self.chance,
        )
