"""`nearcast status`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cli.failures import reported
from cli.json_text import json_text
from cli.server_time import status_time_text
from cli.target_options import AskingCommand, Target, access_options, server_option

if TYPE_CHECKING:
    from nearcast import CallerUsage, ServerStatus


@click.command(cls=AskingCommand, epilog="Example: nearcast status --server example.org --tls")
@server_option
@access_options
@click.option("--all", "everything", is_flag=True, help="Also show counters that are 0, and the limits.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")
def status(*, everything: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show the state and the measurements of a server.

    The exit status is 0 if the server is serving, and 1 otherwise.
    """
    from nearcast import NearcastError, ServerState  # noqa: PLC0415

    with reported(NearcastError):
        found = asyncio.run(_ask(Target(**options)))
    click.echo(json_text(_plain(found)) if as_json else _table(found, everything=everything))
    if found.state is not ServerState.SERVING:
        raise SystemExit(1)


async def _ask(target: Target) -> ServerStatus:
    async with target.connect() as client:
        return await client.status()


def _name(caller: CallerUsage) -> str:
    return f"{caller.tenant}/{caller.id}" if caller.tenant else caller.id


def _plain(found: ServerStatus) -> dict[str, object]:
    return asdict(found) | {"state": found.state.name}


def _table(found: ServerStatus, *, everything: bool) -> str:
    parts: list[tuple[str, dict[str, float]]] = [("now", dict(found.gauges))]
    counters = {name: value for name, value in found.counters.items() if value or everything}
    parts.append(("since the start", dict(counters)))
    if everything:
        parts.append(("limits", found.limits))
    parts = [(title, dict(sorted(part.items()))) for title, part in parts]
    if found.callers:  # which come by their use
        shares = {_name(one): round(100.0 * one.time_share, 2) for one in found.callers}
        parts.append(("busiest callers of the last seconds, % of the server's time", shares))
    width = max(len(name) for _, part in parts for name in part)
    missing = found.gauges.get("kernels_missing", 0)
    state = f"{found.state.name}, {missing:,} kernels to compile" if missing else found.state.name
    lines = [f"{state}, server time {status_time_text(found)}"]
    for title, part in parts:
        lines += ["", title]
        lines += [f"  {name:<{width}}  {value:>16,.10g}" for name, value in part.items()]
    return "\n".join(lines)
