"""`nearcast retract`: retract objects, whoever has published them."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cli.confirming import confirm, require_server
from cli.failures import reported
from cli.numbers import OBJECT_ID
from cli.target_options import Target, access_options, server_option


@click.command(epilog="Example: nearcast retract 4711 --key bakery-1 --yes")
@click.argument("object_ids", metavar="[ID]...", type=OBJECT_ID, nargs=-1)
@click.option("--key", "keys", metavar="KEY", multiple=True, help="Key of an object; repeatable.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@server_option
@access_options
def retract(object_ids: tuple[int, ...], keys: tuple[str, ...], *, yes: bool, **options: Any) -> None:  # noqa: ANN401
    """Retract the objects with these IDs and keys from a server, all or none.

    A publisher's token retracts its own objects, an operator's those of all publishers of its tenant.
    nearcast inspect object shows an object first.
    """
    from nearcast import NearcastError  # noqa: PLC0415

    count = len(object_ids) + len(keys)
    if not count:
        raise click.UsageError("Give the id of an object, or --key.")
    target = Target(**options)
    counted = f"{count} object{'s' * (count != 1)}"
    if not yes:
        confirm(f"Retract {counted} on {target.server}?")

    async def delete() -> None:
        async with target.connect() as client:
            await require_server(client)
            await client.publisher().retract(*object_ids, keys=keys)

    with reported(NearcastError):
        asyncio.run(delete())
    click.echo(f"{counted} retracted")
