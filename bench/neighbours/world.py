"""Run a server process that has the objects of a world."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from bench.errors import BenchError
from bench.neighbours.acts import World
from bench.neighbours.caller import PUBLISH
from bench.neighbours.tokens import Tokens, metadata
from bench.server.processes import Process, running
from identity.principal import Role
from nearcast.v1 import publisher_service_pb2

_READY = "serving on "
_REQUEST_BYTES = 2 * 2**20
_REQUEST_OBJECTS = 1_000
_OBJECT_BYTES = 100
"""Maximum size of an object without its payload."""
_PUBLISHER_OBJECTS = 20_000
"""Objects of one publisher: below any quota of objects and within the burst of its rate."""
_TTL_MS = 3_600_000
_WORDS = 500


@contextmanager
def serving(
    world: World,
    folder: Path,
    tokens: Tokens,
    command: str = "",
    flags: Sequence[str] = (),
    tenants: Sequence[str] = ("",),
) -> Iterator[Process]:
    """Run a server that has the objects of a world, of each tenant, until the block ends.

    Parameters
    ----------
    world
        The area and the objects.
    folder
        Folder of its store and log.
    tokens
        The keys that the server accepts, and a token of a publisher.
    command
        Command line of another installation; if it is empty, this installation runs.
    flags
        Additional flags of the server.
    tenants
        Tenants that have the objects; the empty name is the default tenant's.

    Raises
    ------
    BenchError
        If the server does not start, or refuses an object.
    """
    own = [f"--area={world.area}", "--port=0", f"--store={folder / 'store.db'}", "--create"]
    own += [f"--tenant={tenant}" for tenant in tenants if tenant]
    arguments = ["serve", *own, f"--jwks={tokens.path}", *flags]
    log = folder / "server.log"
    with running(
        arguments if command else ["cli", *arguments],
        _READY,
        log,
        command=shlex.split(command),
        folder=folder if command else None,
    ) as server:
        for tenant in tenants:
            asyncio.run(_publish(world, server.address, tokens, tenant))
        yield server


async def _publish(world: World, address: str, tokens: Tokens, tenant: str) -> None:
    sizes = [_PUBLISHER_OBJECTS] * (world.objects // _PUBLISHER_OBJECTS)
    sizes += [world.objects % _PUBLISHER_OBJECTS]
    rng = np.random.default_rng(1)
    async with grpc.aio.insecure_channel(address) as channel:
        for number, size in enumerate(filter(None, sizes)):
            token = tokens.text(f"stock-{number}", Role.PUBLISHER, tenant)
            await _publish_as(channel, token, _requests(world, size, rng))


def _requests(world: World, size: int, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield requests that publish `size` objects."""
    lon_min, lat_min, lon_max, lat_max = map(float, world.area.split(","))
    step = min(_REQUEST_OBJECTS, _REQUEST_BYTES // (world.payload_bytes + _OBJECT_BYTES))
    lons, lats = rng.uniform(lon_min, lon_max, size), rng.uniform(lat_min, lat_max, size)
    words = rng.integers(_WORDS, size=size)
    for start in range(0, size, step):
        request = publisher_service_pb2.PublishRequest(sequence=start + 1)
        for i in range(start, min(start + step, size)):
            new = request.objects.add(
                keywords=[world.word, f"w{words[i]}"], ttl_ms=_TTL_MS, payload=b"p" * world.payload_bytes
            )
            new.position.lon, new.position.lat = lons[i], lats[i]
        yield request.SerializeToString()


async def _publish_as(channel: Any, token: str, requests: Iterator[bytes]) -> None:  # noqa: ANN401
    """Publish requests one after the other; repeat one that comes too early after the given time."""
    stream = channel.stream_stream(PUBLISH)(metadata=metadata(token))
    for request in requests:
        while True:
            await stream.write(request)
            data = await stream.read()
            if data is grpc.aio.EOF:
                raise BenchError(f"objects are not published: {await stream.details()}")
            response = publisher_service_pb2.PublishResponse.FromString(data)
            if response.ids:
                break
            if not response.error.retry_after_ms:
                raise BenchError(f"objects are not published: {response.error.message}")
            await asyncio.sleep(response.error.retry_after_ms / 1e3)
    await stream.done_writing()
