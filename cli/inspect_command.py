"""`nearcast inspect`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from cli.device_group import DeviceGroup
from cli.failures import reported
from cli.inspect_text import device_lines, object_lines, subscription_lines
from cli.json_text import json_text
from cli.numbers import OBJECT_ID, NumberWithHint
from cli.target_options import Target, access_options, server_option

if TYPE_CHECKING:
    from nearcast import Client


@click.group(cls=DeviceGroup)
def inspect() -> None:
    """Show the server's data about a device, a subscription or an object.

    For a subscription and an object, show why its device has the object or does not have it. The output
    has positions of devices: for operators only.
    """


class _Name(click.types.StringParamType):
    """A device id or a key. The server takes an empty one for none, and reports another field."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument or option."""
        if not value:
            self.fail(f"{value!r} must have at least 1 character", param, ctx)
        return super().convert(value, param, ctx)


_NAME = _Name()
_SUBSCRIPTION_ID = NumberWithHint(
    0, 2**32 - 1, "`nearcast inspect device DEVICE_ID` shows numbers and names"
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")


@inspect.command(epilog="Example: nearcast inspect device car-7 --all")
@click.argument("device_id", type=_NAME)
@click.option("--all", "with_held", is_flag=True, help="Show what it holds for each subscription, too.")
@server_option
@access_options
@_as_json
def device(device_id: str, *, with_held: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show the state of a device, and its subscriptions.

    Why it has an object, or does not have it: nearcast inspect subscription DEVICE_ID NUMBER --key KEY
    """
    found = _ask(
        options,
        lambda client: _whole(client, device_id) if with_held else client.inspect(device_id),
    )
    _show(found, device_lines(found), as_json=as_json)


@inspect.command(epilog="Example: nearcast inspect subscription car-7 1 --object 4711")
@click.argument("device_id", type=_NAME)
@click.argument("subscription_id", type=_SUBSCRIPTION_ID)
@click.option(
    "--object",
    "object_id",
    type=OBJECT_ID,
    help="Show why the device has the object with this id, or does not have it.",
)
@click.option("--key", type=_NAME, metavar="KEY", help="The same for the live object with this key.")
@server_option
@access_options
@_as_json
def subscription(
    device_id: str,
    subscription_id: int,
    object_id: int | None,
    key: str | None,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show the spec of a subscription, and the objects that its device holds for it."""
    if object_id is not None and key is not None:
        raise click.UsageError("Give --object or --key, not both.")
    found = _ask(
        options,
        lambda client: client.inspect(device_id, subscription_id, object_id or 0, object_key=key or ""),
    )
    _show(found, subscription_lines(found), as_json=as_json)


@inspect.command("object", epilog="Example: nearcast inspect object --key bakery-1")
@click.argument("object_id", type=OBJECT_ID, required=False)
@click.option("--key", type=_NAME, metavar="KEY", help="Key of the object, in place of its id.")
@server_option
@access_options
@_as_json
def object_(
    object_id: int | None,
    key: str | None,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show a live object, by its id or its key, and the devices that hold it."""
    if (object_id is None) is (key is None):
        raise click.UsageError("Give OBJECT_ID or --key KEY.")
    found = _ask(options, lambda client: client.inspect(object_id=object_id or 0, object_key=key or ""))
    _show(found, object_lines(found), as_json=as_json)


async def _whole(client: Client, device_id: str) -> dict[str, Any]:
    """Return the data of a device, with what it holds for each of its subscriptions."""
    found = await client.inspect(device_id)
    numbers = [one["subscription_id"] for one in found["subscriptions"]]
    found["subscriptions"] = [await client.inspect(device_id, number) for number in numbers]
    return found


def _ask(
    options: dict[str, Any], ask: Callable[[Client], Coroutine[Any, Any, dict[str, Any]]]
) -> dict[str, Any]:
    from nearcast import NearcastError  # noqa: PLC0415

    target = Target(**options)

    async def connected() -> dict[str, Any]:
        async with target.connect() as client:
            return await ask(client)

    with reported(NearcastError):
        return asyncio.run(connected())


def _show(found: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    click.echo(json_text(found) if as_json else "\n".join(lines))
