"""`nearcast inspect`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from cli.device_group import DeviceGroup
from cli.failures import reported
from cli.inspect_text import device_lines, object_lines, subscription_lines
from cli.json_text import json_text
from cli.target_options import Target, access_options, server_option


@click.group(cls=DeviceGroup)
def inspect() -> None:
    """Show the server's data about a device, a subscription or an object.

    For a subscription and an object, show why its device has the object or does not have it. The output
    has positions of devices: for operators only.
    """


class _Number(click.IntRange):
    """A number within limits. The error for a name in its place explains how to pass a name."""

    def __init__(self, least: int, most: int, hint: str) -> None:
        super().__init__(least, most)
        self._hint = hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; {self._hint}", param, ctx)
        return super().convert(value, param, ctx)


class _Name(click.types.StringParamType):
    """A device id or a key. The server takes an empty one for none, and reports another field."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument or option."""
        if not value:
            self.fail(f"{value!r} must have at least 1 character", param, ctx)
        return super().convert(value, param, ctx)


_NAME = _Name()
_ID = _Number(1, 2**63 - 1, "the key of an object is given as --key KEY")
_SUBSCRIPTION_ID = _Number(0, 2**32 - 1, "`nearcast inspect device DEVICE_ID` shows numbers and names")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")


@inspect.command(epilog="Example: nearcast inspect device car-7")
@click.argument("device_id", type=_NAME)
@server_option
@access_options
@_as_json
def device(device_id: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show the state of a device, and its subscriptions."""
    found = _ask(options, device_id)
    _show(found, device_lines(found), as_json=as_json)


@inspect.command(epilog="Example: nearcast inspect subscription car-7 1 --object 4711")
@click.argument("device_id", type=_NAME)
@click.argument("subscription_id", type=_SUBSCRIPTION_ID)
@click.option(
    "--object",
    "object_id",
    type=_ID,
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
    found = _ask(options, device_id, subscription_id, object_id or 0, key or "")
    _show(found, subscription_lines(found), as_json=as_json)


@inspect.command("object", epilog="Example: nearcast inspect object --key bakery-1")
@click.argument("object_id", type=_ID, required=False)
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
    found = _ask(options, "", None, object_id or 0, key or "")
    _show(found, object_lines(found), as_json=as_json)


def _ask(
    options: dict[str, Any],
    device_id: str,
    subscription_id: int | None = None,
    object_id: int = 0,
    object_key: str = "",
) -> dict[str, Any]:
    from nearcast import NearcastError  # noqa: PLC0415

    target = Target(**options)

    async def ask() -> dict[str, Any]:
        async with target.connect() as client:
            return await client.inspect(device_id, subscription_id, object_id, object_key=object_key)

    with reported(NearcastError):
        return asyncio.run(ask())


def _show(found: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    click.echo(json_text(found) if as_json else "\n".join(lines))
