"""`nearcast cluster`: the nodes of a cluster."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cli.cluster_backup import backup, restore
from cli.failures import reported
from cli.target_options import AskingCommand, Target, access_options, server_option
from cluster.slots import SLOTS

if TYPE_CHECKING:
    from nearcast import ClusterNode, ServerStatus

_COLUMNS = ("node", "state", "owns", "serves", "devices", "subscriptions", "objects", "offset", "lag ms")
_DEVICES = ("devices.IN_SYNC", "devices.CATCHING_UP")
_NO_RESPONSE = "no response"


@click.group()
def cluster() -> None:
    """Show the nodes of a cluster; back it up, and restore it."""


cluster.command_class = AskingCommand
cluster.add_command(backup)
cluster.add_command(restore)


@cluster.command(epilog="Example: nearcast cluster status --server h1:7433")
@server_option
@access_options
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON.")
def status(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show the nodes that a server knows, and what each of them responds.

    Of 1,024 slots of devices, a node owns some, and serves those of which it has read the subscriptions.
    Lag is the time since the last entry of the log that a node has applied; half a second is normal. The
    exit status is 0 if every node responds and every slot is served, and 1 otherwise.
    """
    from nearcast import NearcastError  # noqa: PLC0415

    target = Target(**options)
    with reported(NearcastError):
        nodes, found = asyncio.run(_ask(target))
    if as_json:
        click.echo(json.dumps(_plain(nodes, found), indent=2))
    elif not nodes:
        click.echo(f"{target.server} is a server by itself, not the node of a cluster")
    else:
        click.echo(_table(nodes, found))
    served = sum(one.gauges.get("cluster_slots", 0) for one in found if one is not None)
    if nodes and (None in found or served < SLOTS):
        raise SystemExit(1)


async def _ask(target: Target) -> tuple[tuple[ClusterNode, ...], list[ServerStatus | None]]:
    """Return the nodes, and the status of each; None for a node that does not respond."""
    async with target.connect() as client:
        first = await client.status()
    others = (first if one.is_this else await _ask_node(target, one) for one in first.nodes)
    return first.nodes, [one async for one in others]


async def _ask_node(target: Target, node: ClusterNode) -> ServerStatus | None:
    from nearcast import NearcastError  # noqa: PLC0415

    try:
        async with target._replace(server=node.address).connect() as client:
            return await client.status()
    except NearcastError:
        return None


def _plain(nodes: tuple[ClusterNode, ...], found: list[ServerStatus | None]) -> list[dict[str, object]]:
    return [
        asdict(node) | {"state": node.state.name, "gauges": None if one is None else one.gauges}
        for node, one in zip(nodes, found, strict=True)
    ]


def _table(nodes: tuple[ClusterNode, ...], found: list[ServerStatus | None]) -> str:
    rows = [_COLUMNS, *(_row(node, one) for node, one in zip(nodes, found, strict=True))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    owned = sum(node.slot_count for node in nodes)
    served = sum(one.gauges.get("cluster_slots", 0) for one in found if one is not None)
    lines += ["", f"{owned:,} of {SLOTS:,} slots have an owner, {served:,} are served"]
    return "\n".join(lines)


def _aligned(row: tuple[str, ...], widths: list[int]) -> list[str]:
    """Return the cells of a row: the first two columns are text, the others numbers."""
    return [
        cell.ljust(width) if i < 2 else cell.rjust(width)  # noqa: PLR2004
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _row(node: ClusterNode, found: ServerStatus | None) -> tuple[str, ...]:
    start = (node.address, node.state.name, f"{node.slot_count:,}")
    if found is None:
        return (*start, _NO_RESPONSE, *[""] * (len(_COLUMNS) - len(start) - 1))
    gauges = found.gauges
    devices = sum(gauges.get(name, 0) for name in _DEVICES)
    names = ("subscriptions", "objects", "cluster_log_offset", "cluster_log_lag_ms")
    numbers = (gauges.get("cluster_slots", 0), devices, *(gauges.get(name, 0) for name in names))
    return (*start, *(f"{one:,}" for one in numbers))
