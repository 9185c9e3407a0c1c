"""A town that walks about: devices of the SDK with subscriptions, and a publisher."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Sequence

from cli.dev.streets import Position, Streets
from nearcast import Boolean, Circle, Client, Device, Fleet, GeoObject, Spec, TopK

_PARTS = 10
"""A tenth of the devices moves every tenth of a second."""

_SPEEDS_MPS = (1.2, 1.4, 1.5, 1.6, 1.3, 4.2, 5.0, 8.0)
_PRIVATE = 10
"""Every tenth device is private."""

_PRIVACY_M = 80.0
_TTL_S = (60.0, 600.0)
_PUBLISHING_S = 0.5
_ATTACHED = 50
"""Devices that attach at a time."""

_ASTRAY_M = 12.0
_OBJECTS_MAX = 500
"""Objects of a request."""

_KINDS = {
    "coffee": ("espresso", "filter", "beans"),
    "tea": ("green", "chai", "mint"),
    "bread": ("rye", "rolls", "cake"),
    "sushi": ("salmon", "tofu", "lunch"),
    "pizza": ("slice", "lunch", "vegan"),
    "books": ("novels", "maps", "comics"),
    "music": ("vinyl", "concert", "strings"),
    "flowers": ("tulips", "herbs", "seeds"),
    "bikes": ("repair", "tubes", "lights"),
    "market": ("apples", "cheese", "honey"),
}
_EXPRESSIONS = (
    "coffee AND (beans OR filter)",
    "(pizza OR sushi) AND lunch",
    "bikes AND NOT tubes",
    "market OR flowers",
    "music AND NOT strings",
)


class Walker:
    """Somebody who walks along streets and turns at crossings.

    Parameters
    ----------
    streets
        The streets.
    rng
        Decides about places, speeds and turns.
    """

    def __init__(self, streets: Streets, rng: random.Random) -> None:
        self._streets = streets
        self._rng = rng
        self._street = rng.choice(streets.from_crossing[rng.choice(list(streets.from_crossing))])
        self._done_m = rng.uniform(0.0, self._street.length_m)
        self._speed_mps = rng.choice(_SPEEDS_MPS) * rng.uniform(0.85, 1.15)

    @property
    def place(self) -> Position:
        """The position, in degrees."""
        return self._streets.along(self._street, self._done_m)

    def walk(self, seconds: float) -> None:
        """Continue for some time."""
        self._done_m += seconds * self._speed_mps
        while self._done_m >= self._street.length_m:
            self._done_m -= self._street.length_m
            ways = self._streets.from_crossing[self._street.target]
            onward = [one for one in ways if one.target != self._street.source]
            self._street = self._rng.choice(onward or ways)


class Town:
    """Devices and a publisher.

    Parameters
    ----------
    client
        The connection to the server.
    streets
        Where everything happens.
    device_count, object_count
        The number of devices, and of objects that live at a time.
    rng
        Decides about everything.
    """

    def __init__(
        self,
        client: Client,
        streets: Streets,
        device_count: int,
        object_count: int,
        rng: random.Random,
    ) -> None:
        self._client = client
        self._streets = streets
        self._ways = list(streets.all())
        self._object_count = object_count
        self._rng = rng
        self._walkers = [Walker(streets, rng) for _ in range(device_count)]
        self._devices: list[Device] = []

    @property
    def counts(self) -> tuple[int, int]:
        """Moves and reports of all devices."""
        counters = [device.counters for device in self._devices]
        return sum(one.moves for one in counters), sum(one.reports for one in counters)

    async def settle(self, fleet: Fleet) -> None:
        """Publish the first objects, and attach all devices with their subscriptions."""
        publisher = self._client.publisher()
        objects = [self._object(self._rng.random()) for _ in range(self._object_count)]
        for first in range(0, len(objects), _OBJECTS_MAX):
            await publisher.publish(objects[first : first + _OBJECTS_MAX])
        for first in range(0, len(self._walkers), _ATTACHED):
            numbers = range(first, min(first + _ATTACHED, len(self._walkers)))
            self._devices += await asyncio.gather(*(self._attached(fleet, one) for one in numbers))

    async def live(self) -> None:
        """Move devices and publish objects until cancelled."""
        publishing = asyncio.create_task(self._publish())
        try:
            await asyncio.gather(self._move(), publishing)
        finally:
            publishing.cancel()

    async def _attached(self, fleet: Fleet, number: int) -> Device:
        lon, lat = self._walkers[number].place
        privacy_m = _PRIVACY_M if number % _PRIVATE == 0 else 0.0
        device = await fleet.attach(f"walker-{number}", lon=lon, lat=lat, privacy_radius_m=privacy_m)
        for name, spec in self._specs(number).items():
            await device.subscribe(spec, name=name)
        return device

    def _specs(self, number: int) -> dict[str, Spec]:
        """Return the subscriptions of a device, by name."""
        wanted = self._rng.sample(list(_KINDS), 2)
        found: dict[str, Spec] = {"best": TopK(wanted, k=3, distance_scale_m=1_000.0)}
        if number % 3 == 0:
            expression = self._rng.choice(_EXPRESSIONS)
            found["near"] = Boolean(expression, Circle(250.0), moving=True)
        return found

    async def _move(self) -> None:
        walkers = list(zip(self._devices, self._walkers, strict=True))
        parts: Sequence[list[tuple[Device, Walker]]] = [walkers[i::_PARTS] for i in range(_PARTS)]
        moved_s = [time.monotonic()] * _PARTS
        for part in itertools.cycle(range(_PARTS)):
            await asyncio.sleep(1.0 / _PARTS)
            now_s = time.monotonic()
            seconds, moved_s[part] = now_s - moved_s[part], now_s
            for device, walker in parts[part]:
                walker.walk(seconds)
                await device.move(*walker.place)

    async def _publish(self) -> None:
        publisher = self._client.publisher()
        per_s = self._object_count / (sum(_TTL_S) / 2)
        owed, at_s = 0.0, time.monotonic()
        while True:
            await asyncio.sleep(_PUBLISHING_S)
            now_s = time.monotonic()
            owed, at_s = owed + per_s * (now_s - at_s), now_s
            count = min(int(owed), _OBJECTS_MAX)
            owed -= count
            if count:
                await publisher.publish([self._object() for _ in range(count)])

    def _object(self, left: float = 1.0) -> GeoObject:
        """Return an object beside a street, with a fraction of its lifetime."""
        kind = self._rng.choice(list(_KINDS))
        words = [kind, *self._rng.sample(_KINDS[kind], self._rng.randint(1, 2))]
        street = self._rng.choice(self._ways)
        lon, lat = self._streets.along(street, self._rng.uniform(0.0, street.length_m))
        beside = (self._rng.uniform(-_ASTRAY_M, _ASTRAY_M) / 111_195.0 for _ in range(2))
        ttl_s = max(1.0, left * self._rng.uniform(*_TTL_S))
        return GeoObject(
            words,
            lon=lon + next(beside),
            lat=lat + next(beside),
            ttl_s=ttl_s,
            payload=", ".join(words).encode(),
        )
