"""A shop publishes its offers, replaces them while it is open, and retracts them when it closes.

Each offer has a key and says until when it holds. Publishing a key with other content replaces the offer.
(The same content changes nothing, and does not extend its lifetime.) If a shop crashes, its offers expire
by themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
from datetime import datetime, timedelta

import nearcast
from nearcast import GeoObject

OFFERS = (
    ("sushi", 14.505, 35.897, "sushi, 20 % off"),
    ("tea", 14.512, 35.899, "tea for two"),
    ("tea", 14.478, 35.888, "iced tea, free refill"),
)
"""Keyword, longitude, latitude and text."""


def offers(shop: str, ttl_s: float) -> list[GeoObject]:
    """Return the offers of a shop, with the time at which they end."""
    end = f"{datetime.now().astimezone() + timedelta(seconds=ttl_s):%H:%M:%S}"
    return [
        GeoObject(
            {keyword},
            lon=lon,
            lat=lat,
            ttl_s=ttl_s,
            payload=f"{text}, until {end}".encode(),
            key=f"{shop}-{number}",
        )
        for number, (keyword, lon, lat, text) in enumerate(OFFERS)
    ]


async def main() -> None:
    """Publish until the program is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--server", default="localhost:7433", metavar="HOST:PORT")
    parser.add_argument("--shop", default="bar-7", help="prefix of the keys of the offers [bar-7]")
    parser.add_argument("--ttl-s", type=float, default=60.0, help="lifetime of an offer [60]")
    options = parser.parse_args()

    closing = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, closing.set)
    async with nearcast.connect(options.server) as client:
        publisher = client.publisher()
        while not closing.is_set():
            ids = await publisher.publish(offers(options.shop, options.ttl_s))
            print(f"{len(ids)} offers published", flush=True)
            try:
                await asyncio.wait_for(closing.wait(), options.ttl_s / 2)
            except TimeoutError:
                continue
        await publisher.retract(keys=[offer.key for offer in offers(options.shop, options.ttl_s)])
        print("closed, all offers retracted")


if __name__ == "__main__":
    asyncio.run(main())
