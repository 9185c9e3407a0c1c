"""`nearcast status`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.failures import reported

if TYPE_CHECKING:
    from nearcast import ServerStatus, Tls


@click.command(epilog="Example: nearcast status localhost:7433")
@click.argument("target", default="localhost:7433")
@click.option("--token", envvar="NEARCAST_TOKEN", help="What the server asks for.")
@click.option(
    "--tls-root",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificates to verify the server with, PEM.",
)
@click.option("--all", "everything", is_flag=True, help="Show counters that are 0 and the limits, too.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON.")
def status(
    target: str, token: str | None, tls_root: Path | None, *, everything: bool, as_json: bool
) -> None:
    """Show what a server is doing and what it has counted.

    The exit status is 0 for a server that is serving and 1 for any other.
    """
    from nearcast import NearcastError, ServerState, Tls  # noqa: PLC0415

    tls = None if tls_root is None else Tls(tls_root.read_bytes())
    with reported(NearcastError):
        found = asyncio.run(_ask(target, token, tls))
    click.echo(json.dumps(_plain(found), indent=2) if as_json else _table(found, everything=everything))
    if found.state is not ServerState.SERVING:
        raise SystemExit(1)


async def _ask(target: str, token: str | None, tls: Tls | None) -> ServerStatus:
    import nearcast  # noqa: PLC0415

    async with nearcast.connect(target, token=token, tls=tls) as client:
        return await client.status()


def _plain(found: ServerStatus) -> dict[str, object]:
    return asdict(found) | {"state": found.state.name}


def _table(found: ServerStatus, *, everything: bool) -> str:
    when = "not known yet"
    if found.time_ms:
        when = datetime.fromtimestamp(found.time_ms / 1000.0, UTC).isoformat(sep=" ", timespec="seconds")
    parts: list[tuple[str, dict[str, float]]] = [("now", dict(found.gauges))]
    counters = {name: value for name, value in found.counters.items() if value or everything}
    parts.append(("since the start", dict(counters)))
    if everything:
        parts.append(("limits", found.limits))
    width = max(len(name) for _, part in parts for name in part)
    lines = [f"{found.state.name}, server time {when}"]
    for title, part in parts:
        lines += ["", title]
        lines += [f"  {name:<{width}}  {value:>16,.10g}" for name, value in sorted(part.items())]
    return "\n".join(lines)
