"""`nearcast forget`: delete the data of a device on a server."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cli.confirming import confirm, require_server
from cli.device_group import DeviceGroup
from cli.failures import reported
from cli.target_options import Target, access_options, server_option

_BACKUPS = (
    "Earlier backups still contain the data: delete them, or delete the device again after a "
    "restore.\ndocs/personal-data.md lists where else data may remain, and for how long."
)
_UNKNOWN = "Is the id right? Backups contain the data of devices that were deleted after them."


@click.group(cls=DeviceGroup)
def forget() -> None:
    """Delete the data of a device on a server permanently."""


@forget.command(epilog="Example: nearcast forget device car-7 --yes")
@click.argument("device_id")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@server_option
@access_options
def device(device_id: str, *, yes: bool, **options: Any) -> None:  # noqa: ANN401
    """Delete a device: its subscriptions, its session, the positions where it was evaluated.

    If it is attached, the server detaches it, and its app gets the reason. Objects that its user has
    published are not deleted: nearcast retract does.
    """
    from nearcast import NearcastError  # noqa: PLC0415

    target = Target(**options)
    if not yes:
        confirm(f"Delete all data of device {device_id} on {target.server}?")

    async def delete() -> int:
        async with target.connect() as client:
            await require_server(client)
            return await client.forget_device(device_id)

    with reported(NearcastError):
        count = asyncio.run(delete())
    deleted = "it had no subscriptions, or was unknown; the server has no data of it"
    if count:
        deleted = f"{count} subscription{'s' * (count != 1)}, its session and its positions were deleted"
    click.echo(f"device {device_id}: {deleted}")
    click.echo(_BACKUPS if count else _UNKNOWN)
