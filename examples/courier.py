"""A courier walks across Malta and sees the five best offers wherever he is.

The best are those with the smallest score, which weighs distance against keywords: an offer of sushi
alone may come after one of sushi and tea that is farther away. The device reports its position only when
it leaves its safe region. The last line shows how rarely that was.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools

import nearcast
from nearcast import Subscription, TopK

WALK = ((14.40, 35.88), (14.48, 35.89), (14.51, 35.90))
"""Corners of the way: longitude and latitude."""


def positions(steps: int) -> list[tuple[float, float]]:
    """Return positions along the way, so many between two corners."""
    found = []
    for (lon, lat), (next_lon, next_lat) in itertools.pairwise(WALK):
        for step in range(steps):
            part = step / steps
            found.append((lon + part * (next_lon - lon), lat + part * (next_lat - lat)))
    return [*found, WALK[-1]]


async def show(offers: Subscription) -> None:
    """Print the list whenever it changes, until the subscription ends."""
    shown: list[int] = []
    async for change in offers.changes():
        print(change.kind.upper(), sorted(change.object.keywords), change.reason)
        found = offers.results()
        if shown != (shown := [match.object.id for match in found]):
            for rank, match in enumerate(found, 1):
                print(f"  {rank}. {match.object.payload.decode()}, {match.distance_m:,.0f} m")


async def main() -> None:
    """Walk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--server", default="localhost:7433", metavar="HOST:PORT")
    parser.add_argument("--device", default="courier-1", help="name of the device [courier-1]")
    parser.add_argument("--keywords", nargs="+", default=["sushi", "tea"], help="[sushi tea]")
    parser.add_argument("--steps", type=int, default=60, help="between two corners of the route [60]")
    parser.add_argument("--pause-s", type=float, default=0.2, help="between two steps [0.2]")
    options = parser.parse_args()

    async with nearcast.connect(options.server) as client:
        way = positions(options.steps)
        device = await client.attach(options.device, lon=way[0][0], lat=way[0][1])
        spec = TopK(set(options.keywords), k=5, distance_scale_m=5000)
        offers = await device.subscribe(spec, name="offers")
        printing = asyncio.create_task(show(offers))
        for lon, lat in way:
            await device.move(lon=lon, lat=lat)
            await asyncio.sleep(options.pause_s)
        await offers.exact_results()
        print(f"{device.counters.moves} moves, {device.counters.reports} reports, {offers.state}")
        await device.forget()  # an app keeps its device; an example leaves nothing behind
        await printing


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("stopped; the server keeps the subscription for the next run")
