"""`nearcast inspect`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import click

from cli.failures import reported
from cli.target_options import AskingCommand, Target, access_options, server_option

_WHY = {
    "VERDICT_HELD": "the device holds it, or will when what was sent has arrived",
    "VERDICT_UNKNOWN_OBJECT": "no object was given this id yet",
    "VERDICT_GONE": "it has expired, was taken back or was replaced",
    "VERDICT_PARKED": "the subscription is not evaluated: its device is away",
    "VERDICT_NO_COMMON_KEYWORD": "it shares no keyword with the subscription",
    "VERDICT_NO_CLAUSE": "it matches no clause of the expression",
    "VERDICT_OUT_OF_WINDOW": "it does not count in the window of the subscription",
    "VERDICT_PENDING": "the device has to say where it is first",
    "VERDICT_BEYOND_REACH": "it cannot be among the k best while the device stays within its region",
    "VERDICT_BEATEN": "k objects that the device holds are better wherever it is, and live as long",
    "VERDICT_NOT_AMONG_K": "it is not among the k best where the subscription stands",
    "VERDICT_OUT_OF_RANGE": "it is not within the range grown by the slack",
    "VERDICT_TOO_MANY": "there are more matches than the server sends, and others are nearer",
}
_HELD_SHOWN = 20
_OBJECT_ID = click.IntRange(1, 2**63 - 1)


@click.group()
def inspect() -> None:
    """Why did, or didn't, a device get an object? What a server knows of one thing.

    It shows where devices were evaluated: for operators only.
    """


inspect.command_class = AskingCommand

_as_json = click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")


@inspect.command(epilog="Example: nearcast inspect device car-7")
@click.argument("device_id")
@server_option
@access_options
@_as_json
def device(device_id: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show the state of a device, and its subscriptions."""
    found = _ask(options, device_id)
    _show(found, _device_lines(found), as_json=as_json)


@inspect.command(epilog="Example: nearcast inspect subscription car-7 1 --object 4711")
@click.argument("device_id")
@click.argument("subscription_id", type=click.IntRange(0, 2**32 - 1))
@click.option(
    "--object", "object_id", type=_OBJECT_ID, help="Tell why the device has this object, or not."
)
@server_option
@access_options
@_as_json
def subscription(
    device_id: str,
    subscription_id: int,
    object_id: int | None,
    *,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Show what a subscription holds, and how far that holds."""
    found = _ask(options, device_id, subscription_id, object_id or 0)
    _show(found, _subscription_lines(found), as_json=as_json)


@inspect.command("object", epilog="Example: nearcast inspect object 4711")
@click.argument("object_id", type=_OBJECT_ID)
@server_option
@access_options
@_as_json
def object_(object_id: int, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show an object, and who holds it."""
    found = _ask(options, "", None, object_id)
    _show(found, _object_lines(found), as_json=as_json)


def _ask(
    options: dict[str, Any], device_id: str, subscription_id: int | None = None, object_id: int = 0
) -> dict[str, Any]:
    from nearcast import NearcastError  # noqa: PLC0415

    target = Target(**options)

    async def ask() -> dict[str, Any]:
        async with target.connect() as client:
            return await client.inspect(device_id, subscription_id, object_id)

    with reported(NearcastError):
        return asyncio.run(ask())


def _show(found: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(lines))


def _device_lines(found: dict[str, Any]) -> list[str]:
    state = found["state"].removeprefix("DEVICE_STATE_")
    lines = [
        f"device {found['device_id']}: {state}",
        f"  heard of {found['silent_ms'] / 1000:.1f} s ago, lease {found['lease_ms'] / 1000:g} s",
        f"  version {found['version']}, not acknowledged {found['kept_count']} deltas",
        f"  waiting {found['waiting_count']}, last report {found['report_sequence']}",
    ]
    for one in found["subscriptions"]:
        lines += [f"  {line}" for line in _subscription_lines(one)]
    return lines


def _subscription_lines(found: dict[str, Any]) -> list[str]:
    kind = "top_k" if "top_k" in found["spec"] else "boolean" if "boolean" in found["spec"] else "?"
    state = "awake" if found["awake"] else "parked"
    mode = found["spec"]["region"].removeprefix("REGION_MODE_")
    lines = [f"subscription {found['subscription_id']}: {kind}, {mode}, {state}"]
    if found["pending"]:
        lines.append("  an object waits for the device to say where it is")
    if "anchor" in found:
        lines.append(f"  anchor ({found['anchor']['x_m']:.1f}, {found['anchor']['y_m']:.1f}) m")
    if "reach" in found:
        reach = found["reach"]
        lines.append(f"  reach {reach['length_m']:.3f} m, object {reach['object_id']}")
    if "slack" in found:
        many = ", TOO MANY" * found["slack"]["too_many"]
        lines.append(f"  slack {found['slack']['slack_m']:.3f} m{many}")
    if found["held"]:
        lines.append(f"  holds {len(found['held'])}:   rank      object    length m      text m")
    lines += [
        f"  {one['rank'] or '':>17}{one['object_id']:>12}{one['length_m']:>12.3f}{one['r_m']:>12.3f}"
        for one in found["held"][:_HELD_SHOWN]
    ]
    if len(found["held"]) > _HELD_SHOWN:
        lines.append(f"  and {len(found['held']) - _HELD_SHOWN} more: --json shows all")
    if "judgement" in found:
        lines += _judgement_lines(found["judgement"])
    return lines


def _judgement_lines(said: dict[str, Any]) -> list[str]:
    verdict = said["verdict"]
    head = f"object {said['object_id']}: {verdict.removeprefix('VERDICT_')}, {_WHY.get(verdict, '?')}"
    if not said["length_m"]:
        return [head]
    rank = f", rank {said['rank']}" if said["rank"] else ""
    text = f", of which {said['r_m']:.3f} m are text" if said["r_m"] else ""
    return [head, f"  length at the anchor {said['length_m']:.3f} m{text}{rank}"]


def _object_lines(found: dict[str, Any]) -> list[str]:
    item = found["object"]
    left_s = (item["expiry_ms"] - found["time_ms"]) / 1000
    lines = [
        f"object {item['id']}: {' '.join(item['keywords'])}",
        f"  at {item['position']['lon']:.6f}, {item['position']['lat']:.6f}"
        + (", with an area" if "area" in item else ""),
        f"  expires in {left_s:.1f} s; payload {found['payload_bytes']} bytes"
        + (f"; key {item['key']}" if item["key"] else ""),
        f"  held for {found['holder_count']} subscriptions",
    ]
    lines += [f"    {one['device_id']} {one['subscription_id']}" for one in found["holders"]]
    return lines
