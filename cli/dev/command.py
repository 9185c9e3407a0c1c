"""`nearcast dev`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import random
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

import nearcast
from cli.dev.streets import Streets
from cli.failures import reported
from cli.gateway import READY as GATEWAY_READY
from cli.serve import READY as SERVER_READY
from cli.started import started
from nearcast import NearcastError

MIDDLE = (14.505, 35.895)
"""The examples of the documentation have places about this one."""

CROSSINGS = (24, 18)
_CROWD = 500
"""Devices of a town of the ordinary size; more devices live in a larger one."""

_LARGEST = 4.0
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Each ends the command in the same way as Ctrl-C."""

_TOKEN_BYTES = 18
_LOGS = "--log-level=ERROR"

READY = "open "
"""Start of the line on standard output with the address."""


@click.command(epilog="Example: nearcast dev --devices 2000 --objects 10000")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=7480,
    show_default=True,
    help="Port of the gateway on this machine; 0 chooses a free one.",
)
@click.option(
    "--devices",
    type=click.IntRange(1, 10_000),
    default=500,
    show_default=True,
    help="Devices that walk about.",
)
@click.option(
    "--objects",
    type=click.IntRange(1, 100_000),
    default=2_000,
    show_default=True,
    help="Objects that live at a time.",
)
@click.option("--no-town", is_flag=True, help="Start server and gateway only.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Site whose pages may call the gateway, such as http://localhost:8000; repeat for more.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of the town.")
def dev(
    port: int, devices: int, objects: int, seed: int, *, origins: tuple[str, ...], no_town: bool
) -> None:
    """Run a server, a gateway and a small town on this machine until Ctrl-C, in memory.

    Prints an address for a browser, and the server's address, area and token for apps. Devices walk
    along the streets of a generated town with subscriptions and report only when they leave their safe
    regions; objects are published beside the streets and expire. Nothing is kept. The token is valid for
    this run only.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    began_s = time.monotonic()
    rng = random.Random(seed)
    size = min(_LARGEST, max(1.0, math.sqrt(devices / _CROWD)))
    columns, rows = (round(size * one) for one in CROSSINGS)
    streets = Streets(*MIDDLE, columns, rows, rng)
    with contextlib.suppress(KeyboardInterrupt), _services(streets, port, origins) as services:
        if no_town:
            _announce(services, began_s)
            signal.pause()
        click.echo(f"town: {devices:,} devices attach, {objects:,} objects are published")
        with reported(NearcastError):
            asyncio.run(_live(services, streets, (devices, objects), rng, began_s))
    click.echo("ended")


class _Services(NamedTuple):
    """The running server and gateway.

    Parameters
    ----------
    server, gateway
        Their addresses.
    area
        The service area: west, south, east, north in degrees.
    token
        The token of this run.
    """

    server: str
    gateway: str
    area: str
    token: str


@contextlib.contextmanager
def _services(streets: Streets, port: int, origins: tuple[str, ...]) -> Iterator[_Services]:
    """Run a server and a gateway that know one token, which is not on their command lines."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    known = json.dumps([token])
    area = ",".join(f"{one:.6f}" for one in streets.area)
    flags: tuple[str, ...] = (f"--area={area}", "--port=0", "--store=:memory:", _LOGS)
    click.echo("server: starts; the first time on a machine it compiles kernels, for a minute or two")
    with (
        tempfile.TemporaryDirectory(prefix="nearcast-dev-") as folder,
        started("serve", SERVER_READY, *flags, variables={"NEARCAST_TOKENS": known}) as server,
    ):
        own_token, roads = Path(folder) / "token", Path(folder) / "roads.json"
        own_token.write_text(token, encoding="utf-8")
        roads.write_text(json.dumps(streets.geojson()), encoding="utf-8")
        flags = (
            f"--port={port}",
            f"--server={server}",
            f"--server-token-file={own_token}",
            f"--map-file={roads}",
            *(f"--origin={origin}" for origin in origins),
            _LOGS,
        )
        variables = {"NEARCAST_GATEWAY_TOKENS": known}
        with started("gateway", GATEWAY_READY, *flags, variables=variables) as gateway:
            yield _Services(server, gateway, area, token)


def _announce(services: _Services, began_s: float) -> None:
    click.echo(f"ready after {time.monotonic() - began_s:.1f} s; Ctrl-C ends everything")
    click.echo(f"server {services.server}, area {services.area}, token {services.token}")
    click.echo(f"{READY}http://{services.gateway}/map/#token={services.token}")


async def _live(
    services: _Services,
    streets: Streets,
    counts: tuple[int, int],
    rng: random.Random,
    began_s: float,
) -> None:
    """Let a town live until the process is interrupted; then report how much its devices have sent."""
    from cli.dev.town import Town  # noqa: PLC0415 - it imports gRPC

    async with (
        nearcast.connect(services.server, token=services.token) as client,
        client.fleet() as fleet,
    ):
        town = Town(client, streets, *counts, rng)
        await town.settle(fleet)
        _announce(services, began_s)
        try:
            await town.live()
        finally:
            moves, reports = town.counts
            click.echo(f"\n{moves:,} positions of devices, {reports:,} reports")
