"""Devices that walk about and objects for `speed`, in a process of its own: SERVER DEVICES OBJECTS."""

from __future__ import annotations

import asyncio
import random
import sys

from nearcast import Device, Fleet, GeoObject, Publisher, TopK, connect

AREA = (14.41, 35.83, 14.59, 35.97)
_WORDS = ("books", "cake", "coffee", "lunch", "shoes", "sushi", "tea")
_STEP_DEG = 1e-4
_BATCH = 1000
_AT_ONCE = 64
_OBJECTS_PER_S = 20


def _place(rng: random.Random) -> tuple[float, float]:
    west, south, east, north = AREA
    return rng.uniform(west + 0.01, east - 0.01), rng.uniform(south + 0.01, north - 0.01)


def _object(rng: random.Random) -> GeoObject:
    lon, lat = _place(rng)
    return GeoObject(rng.sample(_WORDS, 2), lon=lon, lat=lat, ttl_s=rng.uniform(600.0, 3600.0))


class _Walker:
    def __init__(self, device: Device, place: tuple[float, float], rng: random.Random) -> None:
        self._device = device
        self._place = place
        self._step = rng.uniform(-_STEP_DEG, _STEP_DEG), rng.uniform(-_STEP_DEG, _STEP_DEG)

    async def walk(self) -> None:
        lon, lat = (at + step for at, step in zip(self._place, self._step, strict=True))
        self._place = lon, lat
        await self._device.move(lon, lat)


async def _attached(fleet: Fleet, number: int, rng: random.Random) -> _Walker:
    lon, lat = _place(rng)
    device = await fleet.attach(f"walker-{number}", lon=lon, lat=lat)
    await device.subscribe(TopK(rng.sample(_WORDS, 2), k=3))
    return _Walker(device, (lon, lat), rng)


async def _publish(publisher: Publisher, count: int, rng: random.Random) -> None:
    for begin in range(0, count, _BATCH):
        await publisher.publish([_object(rng) for _ in range(min(_BATCH, count - begin))])


async def main(server: str, devices: int, objects: int) -> None:
    """Attach devices, publish objects; then move them and publish more until the process is ended."""
    rng = random.Random(1)
    async with connect(server) as client, client.publisher() as publisher, client.fleet() as fleet:
        await _publish(publisher, objects, rng)
        walkers: list[_Walker] = []
        for begin in range(0, devices, _AT_ONCE):
            numbers = range(begin, min(begin + _AT_ONCE, devices))
            walkers += await asyncio.gather(*(_attached(fleet, number, rng) for number in numbers))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            await asyncio.sleep(1.0)
            for walker in walkers:
                await walker.walk()
            await _publish(publisher, _OBJECTS_PER_S, rng)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
