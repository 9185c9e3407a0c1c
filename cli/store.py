"""`nearcast store`: maintenance of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cli.failures import reported
from cli.progress import bars
from cli.server_time import time_text

_PATH = click.Path(dir_okay=False, path_type=Path)
_accept_loss = click.option(
    "--accept-loss",
    is_flag=True,
    help="Accept that the last commits in the log are damaged or missing, and warn about the loss. "
    "Damaged rows are kept out only by nearcast serve --accept-loss.",
)


@click.group()
def store() -> None:
    """Maintain a store: back it up, check it, restore it. A server may have it open meanwhile."""


@store.command(epilog="Example: nearcast store backup nearcast.db backups/monday.db")
@click.argument("source", metavar="STORE", type=_PATH)
@click.argument("target", metavar="BACKUP", type=_PATH)
@_accept_loss
def backup(source: Path, target: Path, *, accept_loss: bool) -> None:
    """Copy STORE to the file BACKUP. A server may be running and write to it.

    The copy has every change that was acknowledged before it started. It is checked before it gets its
    name.
    """
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import backup as copy  # noqa: PLC0415

    with reported(StoreError), bars() as progress:
        copy(source, target, progress, accept_loss=accept_loss)
    click.echo(f"{target}: {target.stat().st_size:,} bytes")


@store.command(epilog="Example: nearcast store restore backups/monday.db nearcast.db")
@click.argument("source", metavar="BACKUP", type=_PATH)
@click.argument("target", metavar="STORE", type=_PATH)
@_accept_loss
def restore(source: Path, target: Path, *, accept_loss: bool) -> None:
    """Restore STORE from the file BACKUP. STORE must not exist: move a damaged one away first.

    The backup is checked first. The store is created completely, or not at all.
    """
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import restore as copy  # noqa: PLC0415

    with reported(StoreError), bars() as progress:
        copy(source, target, progress, accept_loss=accept_loss)
    click.echo(f"{target}: {target.stat().st_size:,} bytes")


@store.command(epilog="Example: nearcast store check nearcast.db")
@click.argument("path", metavar="STORE", type=_PATH)
def check(path: Path) -> None:
    """Check STORE, or a backup, and list the errors: of the file, of single rows, or of their meaning.

    Exits with status 1 if there is an error.
    """
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import check as checked  # noqa: PLC0415

    with reported(StoreError), bars() as progress:
        found = checked(path, progress)
    for problem in found:
        click.echo(problem)
    click.echo(f"{path}: {len(found)} problems")
    raise SystemExit(1 if found else 0)


@store.command(epilog="Example: nearcast store compact nearcast.db")
@click.argument("path", metavar="STORE", type=_PATH)
@_accept_loss
def compact(path: Path, *, accept_loss: bool) -> None:
    """Rewrite STORE as small as possible, without any deleted data.

    No server may have it open.
    """
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import compact as compacted  # noqa: PLC0415

    with reported(StoreError):
        compacted(path, accept_loss=accept_loss)
    click.echo(f"{path}: {path.stat().st_size:,} bytes")


@store.command(epilog="Example: nearcast store info nearcast.db")
@click.argument("path", metavar="STORE", type=_PATH)
def info(path: Path) -> None:
    """Show the contents of STORE, its size, and whether a server has it open."""
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import facts  # noqa: PLC0415

    with reported(StoreError):
        found = facts(path)
    for name, value in found.items():
        label = "server time" if name == "time_ms" else name.replace("_", " ")
        click.echo(f"{label:<30} {_shown(name, value)}")


def _shown(name: str, value: Any) -> str:  # noqa: ANN401 - facts have several types
    """Format a fact: times as dates, numbers with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "time_ms":
        return time_text(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
