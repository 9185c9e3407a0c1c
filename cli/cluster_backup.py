"""`nearcast cluster backup` and `nearcast cluster restore`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.cluster_log import PROMISES, connected, run, settings_of
from cli.options import ModelCommand, log_settings
from cli.target_options import AskingCommand, Target, access_options, server_option

if TYPE_CHECKING:
    from server.cluster_backup import BackupFacts
    from server.log_settings import LogSettings

_PATH = click.Path(dir_okay=False, path_type=Path)


class _BackupCommand(AskingCommand, ModelCommand):
    """A command that calls a server and the servers of the log."""


@click.command(
    cls=_BackupCommand,
    model=log_settings,
    without=PROMISES,
    epilog="Example: nearcast cluster backup monday.db --server h1:7433 --log nats://log1,nats://log2",
)
@click.argument("target", metavar="FILE", type=_PATH)
@server_option
@access_options
def backup(target: Path, **options: Any) -> None:  # noqa: ANN401
    """Write a backup of a cluster to FILE, while it runs.

    The objects come from the server, which needs the token of an operator; the subscriptions of devices
    come from the servers of the log. FILE has everything that was acknowledged before the backup started.
    It is checked before it gets its name; `nearcast store check` checks it again.
    """
    of_log = {name: value for name, value in options.items() if name.startswith("log")}
    settings = settings_of(of_log)
    server = Target(**{name: value for name, value in options.items() if name not in of_log})
    facts = run(lambda: _back_up(server, target, settings))
    click.echo(_described(target, facts))


@click.command(
    cls=ModelCommand,
    model=log_settings,
    epilog="Example: nearcast cluster restore monday.db node1.db --log nats://log1,nats://log2,nats://log3",
)
@click.argument("source", metavar="FILE", type=_PATH)
@click.argument("target", metavar="STORE", type=_PATH)
def restore(source: Path, target: Path, **options: Any) -> None:  # noqa: ANN401
    """Restore a cluster from FILE: the log on its servers, and STORE for the first node.

    The servers must not have the streams of the log, and STORE must not exist. No node may run meanwhile.
    Then start a node with STORE, and the other ones with new stores: they copy it. Stores of the cluster
    from which FILE is are refused from then on.
    """
    settings = settings_of(options)
    facts = run(lambda: _restore(source, target, settings))
    click.echo(_described(target, facts))


def _described(path: Path, facts: BackupFacts) -> str:
    return (
        f"{path}: {path.stat().st_size:,} bytes, objects up to offset {facts.offset:,} of the log, "
        f"{facts.subscription_count:,} subscriptions"
    )


async def _back_up(target: Target, path: Path, settings: LogSettings) -> BackupFacts:
    from cli.progress import bars  # noqa: PLC0415
    from server.cluster_backup import backup as write  # noqa: PLC0415

    opened = await connected(settings)
    try:
        with bars() as progress:
            return await write(opened, lambda part: _fetch(target, part, progress), path, progress)
    finally:
        await opened.close()


async def _restore(source: Path, target: Path, settings: LogSettings) -> BackupFacts:
    from cli.progress import bars  # noqa: PLC0415
    from server.cluster_backup import restore as read  # noqa: PLC0415

    opened = await connected(settings)
    try:
        with bars() as progress:
            return await read(opened, source, target, progress)
    finally:
        await opened.close()


async def _fetch(target: Target, part: Path, progress: Callable[[str, int, int], None]) -> None:
    """Copy the store of the first server that sends it."""
    from nearcast.transport.channel import credentials_of  # noqa: PLC0415
    from server.replication.joining import CopyError  # noqa: PLC0415
    from server.transport.snapshot_client import NodeAccess, copy_snapshot  # noqa: PLC0415

    token, tls = target.credentials()
    credentials = None if tls is None else credentials_of(tls)
    name = "" if tls is None else tls.server_name or ""
    reasons = []
    for address in target.server.split(","):
        access = NodeAccess(address, token or "", credentials, name)
        try:
            await copy_snapshot(access, part, progress)
        except CopyError as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise CopyError("; ".join(reasons))
