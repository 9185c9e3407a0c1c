"""`nearcast store`: what an operator does to a store."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from cli.failures import reported
from cli.progress import bars

_PATH = click.Path(dir_okay=False, path_type=Path)
_accept_loss = click.option(
    "--accept-loss", is_flag=True, help="Continue with what is intact; what is lost is a warning."
)


@click.group()
def store() -> None:
    """Look after a store: copy it, check it, bring it back. A server may have it open meanwhile."""


@store.command(epilog="Example: nearcast store backup nearcast.db backups/monday.db")
@click.argument("source", metavar="STORE", type=_PATH)
@click.argument("target", metavar="BACKUP", type=_PATH)
@_accept_loss
def backup(source: Path, target: Path, *, accept_loss: bool) -> None:
    """Copy STORE to the file BACKUP, while a server goes on writing or not.

    The copy has everything that was acknowledged before it began. It is checked before it gets its name.
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
    """Make STORE of the file BACKUP. There must be no STORE: move a damaged one away first.

    The backup is checked first; the store is there whole, or not at all.
    """
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import restore as copy  # noqa: PLC0415

    with reported(StoreError), bars() as progress:
        copy(source, target, progress, accept_loss=accept_loss)
    click.echo(f"{target}: {target.stat().st_size:,} bytes")


@store.command(epilog="Example: nearcast store check nearcast.db")
@click.argument("path", metavar="STORE", type=_PATH)
def check(path: Path) -> None:
    """Say what is wrong with STORE, or a backup: the file, single rows, or what they mean.

    Exits with status 1 if anything is.
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
    """Write STORE again, as small as it can be, with nothing of what was deleted.

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
    """Say what STORE holds, how large it is, and whether a server has it open."""
    from server.errors import StoreError  # noqa: PLC0415
    from server.store import facts  # noqa: PLC0415

    with reported(StoreError):
        found = facts(path)
    for name, value in found.items():
        label = "server time" if name == "time_ms" else name.replace("_", " ")
        click.echo(f"{label:<30} {_shown(name, value)}")


def _shown(name: str, value: Any) -> str:  # noqa: ANN401 - whatever there is to know
    """Write a fact: times as dates, numbers with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "time_ms":
        with contextlib.suppress(OverflowError, ValueError):  # virtual time may be beyond all dates
            return f"{datetime.fromtimestamp(value / 1000.0, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{value:,}" if isinstance(value, int) else str(value)
