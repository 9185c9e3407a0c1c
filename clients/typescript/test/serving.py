"""A server and a gateway for tests of this client. It reads JSON lines and responds to each with one.

The first line that it writes has both ports. `{"publish": [{...}]}` has the fields of objects; the
response has their ids. `{"search": {...}}` has a place and keywords; the response is the result.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import nearcast
from gateway.main import Gateway
from gateway.settings import GatewaySettings
from server.main import Server
from server.settings import load_settings


async def main() -> None:
    """Serve until the input ends."""
    with tempfile.TemporaryDirectory() as folder:
        flags = {"area": "14,35,15,36", "store": str(Path(folder) / "store.db"), "port": 0}
        server = Server(load_settings({**flags, "create": True}))
        await server.start()
        gateway = Gateway(GatewaySettings(port=0, server=f"127.0.0.1:{server.port}"))
        await gateway.start()
        say({"port": server.port, "gateway": gateway.port})
        async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
            publisher = client.publisher()
            while line := await asyncio.to_thread(sys.stdin.readline):
                say(await response_to(json.loads(line), client, publisher))
        await gateway.stop()
        await server.stop()


async def response_to(command: dict, client: nearcast.Client, publisher: nearcast.Publisher) -> object:
    """Carry out a command."""
    if "publish" in command:
        objects = [nearcast.GeoObject(**fields) for fields in command["publish"]]
        return list(map(str, await publisher.publish(objects)))
    search = command["search"]
    spec = nearcast.TopK(search["keywords"], k=search["k"])
    found = await client.search(spec, lon=search["lon"], lat=search["lat"])
    return [[str(match.object.id), match.score, match.distance_m] for match in found]


def say(value: object) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


asyncio.run(main())
