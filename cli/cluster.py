"""`nearcast cluster`: the nodes of a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cli.cluster_backup import backup, restore
from cli.cluster_sink import end_sink
from cli.failures import reported
from cli.json_text import json_text
from cli.target_options import AskingCommand, Target, access_options, server_option
from cluster.slots import SLOTS

if TYPE_CHECKING:
    from nearcast import ClusterNode, LogServer, LogStream, ServerStatus

_COLUMNS = (
    *("node", "state", "owns", "lease ms", "serves"),
    *("devices", "subscriptions", "objects", "offset", "lag ms", "source", "sink"),
)
_LOG_COLUMNS = ("stream", "leader", "replicas", "messages", "bytes")
_TEXTS = {"node", "state", "source", "sink", "stream", "leader", "replicas"}
_DEVICES = ("devices.IN_SYNC", "devices.CATCHING_UP")
_NO_RESPONSE = "no response"


@click.group()
def cluster() -> None:
    """Show the nodes of a cluster; back it up, restore it, end its sink."""


cluster.command_class = AskingCommand
cluster.add_command(backup)
cluster.add_command(restore)
cluster.add_command(end_sink)


@cluster.command(epilog="Example: nearcast cluster status --server h1:7433")
@server_option
@access_options
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON.")
def status(*, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show the nodes that a server knows, and what each of them responds.

    Of several servers in --server, the first one that responds is used, in this order.

    Of 1,024 slots of devices, a node owns some, and serves those of which it has read the subscriptions.
    Lease is the time since the node has renewed its lease, and lag that since the last entry of the log
    that it has applied; half a second is normal for both. One node reads the source, and
    one writes to the sink, if there are any.
    Below are the streams of the log: the server that leads each, and the others that have it, with the
    number of operations that one of them lacks.
    The exit status is 0 if every node and the log respond, every replica is current and every slot is
    served, and 1 otherwise.
    """
    from nearcast import NearcastError, ServerState  # noqa: PLC0415

    with reported(NearcastError):
        target, first, found = asyncio.run(_ask(Target(**options)))
    nodes, streams = first.nodes, first.log_streams
    if as_json:
        shown = {"nodes": _plain(nodes, found), "log_streams": [asdict(one) for one in streams]}
        click.echo(json_text(shown))
    elif not nodes:
        is_starting = first.state is ServerState.RECOVERING
        found_it = "is starting" if is_starting else "is a server by itself, not the node of a cluster"
        click.echo(f"{target.server} {found_it}")
    else:
        click.echo(_table(nodes, found))
        click.echo(f"\n{_log_table(streams) if streams else 'the log does not respond'}")
    served = sum(one.gauges.get("cluster_slots", 0) for one in found if one is not None)
    is_good = None not in found and served >= SLOTS and _is_current(streams)
    if nodes and not is_good:
        raise SystemExit(1)


def _is_current(streams: tuple[LogStream, ...]) -> bool:
    """Return whether the log responds, and all its replicas are current."""
    return bool(streams) and all(server.is_current for one in streams for server in one.servers)


async def _ask(target: Target) -> tuple[Target, ServerStatus, list[ServerStatus | None]]:
    """Return a server that responds, its status, and that of each of its nodes; None for no response."""
    target, first = await _ask_first(target)
    others = (first if one.is_this else await _ask_node(target, one) for one in first.nodes)
    return target, first, [one async for one in others]


async def _ask_first(target: Target) -> tuple[Target, ServerStatus]:
    """Return the first server that responds, in the order of the option, with its status.

    Raises
    ------
    UnavailableError
        If the last one does not respond either. Those before it are named on standard error.
    """
    from nearcast import UnavailableError  # noqa: PLC0415

    *earlier, last = (target._replace(server=address) for address in target.server.split(","))
    for one in earlier:
        try:
            return one, await _status_of(one)
        except UnavailableError as error:
            click.echo(f"{one.server} does not respond: {error}", err=True)
    return last, await _status_of(last)


async def _status_of(target: Target) -> ServerStatus:
    async with target.connect() as client:
        return await client.status()


async def _ask_node(target: Target, node: ClusterNode) -> ServerStatus | None:
    from nearcast import NearcastError  # noqa: PLC0415

    try:
        return await _status_of(target._replace(server=node.address))
    except NearcastError:
        return None


def _plain(nodes: tuple[ClusterNode, ...], found: list[ServerStatus | None]) -> list[dict[str, object]]:
    return [
        asdict(node) | {"state": node.state.name, "gauges": None if one is None else one.gauges}
        for node, one in zip(nodes, found, strict=True)
    ]


def _table(nodes: tuple[ClusterNode, ...], found: list[ServerStatus | None]) -> str:
    lines = _lines(_COLUMNS, [_row(node, one) for node, one in zip(nodes, found, strict=True)])
    owned = sum(node.slot_count for node in nodes)
    served = sum(one.gauges.get("cluster_slots", 0) for one in found if one is not None)
    lines += ["", f"{owned:,} of {SLOTS:,} slots have an owner, {served:,} are served"]
    return "\n".join(lines)


def _log_table(streams: tuple[LogStream, ...]) -> str:
    return "\n".join(_lines(_LOG_COLUMNS, [_stream_row(one) for one in streams]))


def _stream_row(stream: LogStream) -> tuple[str, ...]:
    leaders = [server.name for server in stream.servers if server.is_leader]
    others = [_replica(server) for server in stream.servers if not server.is_leader]
    leader = leaders[0] if leaders else "none" if others else "-"
    return (
        stream.name,
        leader,
        ", ".join(others) or "-",
        f"{stream.message_count:,}",
        f"{stream.byte_count:,}",
    )


def _replica(server: LogServer) -> str:
    return server.name if server.is_current else f"{server.name} ({server.lag:,} behind)"


def _lines(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table: texts on the left, numbers on the right of their columns."""
    table = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(_aligned(columns, row, widths)).rstrip() for row in table]


def _aligned(columns: tuple[str, ...], row: tuple[str, ...], widths: list[int]) -> list[str]:
    return [
        cell.ljust(width) if name in _TEXTS else cell.rjust(width)
        for name, cell, width in zip(columns, row, widths, strict=True)
    ]


def _row(node: ClusterNode, found: ServerStatus | None) -> tuple[str, ...]:
    start = (node.address, node.state.name, f"{node.slot_count:,}", f"{node.lease_age_ms:,}")
    if found is None:
        return (*start, _NO_RESPONSE, *[""] * (len(_COLUMNS) - len(start) - 1))
    gauges = found.gauges
    devices = sum(gauges.get(name, 0) for name in _DEVICES)
    names = ("subscriptions", "objects", "cluster_log_offset", "cluster_log_lag_ms")
    numbers = (gauges.get("cluster_slots", 0), devices, *(gauges.get(name, 0) for name in names))
    source = "reads" if gauges.get("cluster_source") else ""
    sink = "writes" if gauges.get("cluster_sink") else ""
    return (*start, *(f"{one:,}" for one in numbers), source, sink)
