"""A server for tests of this client, with a publisher. It reads JSON lines and answers each with one.

The first line that it writes has its port. `{"publish": {...}}` has the fields of an object, and is answered
with its id; `{"search": {...}}` has a place and keywords, and is answered with the ids of the result.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import nearcast
from server.main import Server
from server.settings import load_settings


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        flags = {"area": "14,35,15,36", "store": str(Path(folder) / "store.db"), "create": True, "port": 0}
        server = Server(load_settings(flags))
        await server.start()
        say({"port": server.port})
        async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
            publisher = client.publisher()
            while line := await asyncio.to_thread(sys.stdin.readline):
                say(await answered(client, publisher, json.loads(line)))
        await server.stop()


async def answered(client: nearcast.Client, publisher: nearcast.Publisher, command: dict) -> object:
    if "publish" in command:
        (object_id,) = await publisher.publish(nearcast.GeoObject(**command["publish"]))
        return str(object_id)
    search = command["search"]
    spec = nearcast.TopK(search["keywords"], k=search["k"])
    found = await client.search(spec, lon=search["lon"], lat=search["lat"])
    return [[str(match.object.id), match.score, match.distance_m] for match in found]


def say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


asyncio.run(main())
