"""`nearcast cluster backup` and `nearcast cluster restore`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.failures import reported
from cli.target_options import AskingCommand, Target, access_options, server_option
from safe_region.extras import how_to_install

if TYPE_CHECKING:
    from cluster.jetstream import JetStreamLog
    from server.cluster_backup import BackupFacts

_PATH = click.Path(dir_okay=False, path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., object])

_log = click.option(
    "--log",
    metavar="nats://...[,nats://...]",
    envvar="NEARCAST_LOG",
    show_envvar=True,
    required=True,
    help="Servers of the log.",
)
_stream = click.option(
    "--log-stream",
    metavar="NAME",
    envvar="NEARCAST_LOG_STREAM",
    show_envvar=True,
    default="nearcast",
    show_default=True,
    help="Name of the stream of the log.",
)


def _durability_options(command: _Command) -> _Command:
    """Add the options of what the log has to promise, which are those of `nearcast serve`."""
    for option in (
        click.option("--log-unsafe", is_flag=True, help="Use a log that may lose data, to try it out."),
        click.option(
            "--log-replicas",
            type=click.IntRange(1, 5),
            envvar="NEARCAST_LOG_REPLICAS",
            show_envvar=True,
            default=3,
            show_default=True,
            help="Number of servers that have the log on disk.",
        ),
        click.option(
            "--log-monitor",
            metavar="http://...[,http://...]",
            envvar="NEARCAST_LOG_MONITOR",
            show_envvar=True,
            default="",
            help="Monitoring ports of all servers of the log.",
        ),
    ):
        command = option(command)
    return command


@click.command(
    cls=AskingCommand,
    epilog="Example: nearcast cluster backup monday.db --server h1:7433 --log nats://log1,nats://log2",
)
@click.argument("target", metavar="FILE", type=_PATH)
@server_option
@_log
@_stream
@access_options
def backup(target: Path, log: str, log_stream: str, **options: Any) -> None:  # noqa: ANN401
    """Write a backup of a cluster to FILE, while it runs.

    The objects come from the server, which needs the token of an operator; the subscriptions of devices
    come from the servers of the log. FILE has everything that was acknowledged before the backup started.
    It is checked before it gets its name; `nearcast store check` checks it again.
    """
    facts = _run(lambda: _back_up(Target(**options), target, log, log_stream))
    click.echo(_described(target, facts))


@click.command(
    epilog="Example: nearcast cluster restore monday.db node1.db --log nats://log1,nats://log2,nats://log3"
)
@click.argument("source", metavar="FILE", type=_PATH)
@click.argument("target", metavar="STORE", type=_PATH)
@_log
@_stream
@_durability_options
def restore(source: Path, target: Path, **options: Any) -> None:  # noqa: ANN401
    """Restore a cluster from FILE: the log on its servers, and STORE for the first node.

    The servers must not have the streams of the log, and STORE must not exist. No node may run meanwhile.
    Then start a node with STORE, and the other ones with new stores: they copy it. Stores of the cluster
    from which FILE is are refused from then on.
    """
    facts = _run(lambda: _restore(source, target, **options))
    click.echo(_described(target, facts))


def _described(path: Path, facts: BackupFacts) -> str:
    return (
        f"{path}: {path.stat().st_size:,} bytes, objects up to offset {facts.offset:,} of the log, "
        f"{facts.subscription_count:,} subscriptions"
    )


def _run(work: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Run a coroutine, and report errors in a line."""
    try:
        from cluster.jetstream import JetStreamLog  # noqa: F401, PLC0415
        from cluster.log import LogError  # noqa: PLC0415
        from server.errors import StoreError  # noqa: PLC0415
        from server.replication.joining import CopyError  # noqa: PLC0415
    except ImportError as error:
        raise click.ClickException(f"this needs {error.name}: {how_to_install('cluster')}") from None
    with reported(LogError, StoreError, CopyError, OSError):
        return asyncio.run(work())


async def _back_up(target: Target, path: Path, log: str, log_stream: str) -> BackupFacts:
    from cli.progress import bars  # noqa: PLC0415
    from server.cluster_backup import backup as write  # noqa: PLC0415

    opened = await _connected(log, log_stream)
    try:
        with bars() as progress:
            return await write(opened, lambda part: _fetch(target, part, progress), path, progress)
    finally:
        await opened.close()


async def _restore(source: Path, target: Path, log: str, log_stream: str, **promises: Any) -> BackupFacts:  # noqa: ANN401
    from cli.progress import bars  # noqa: PLC0415
    from server.cluster_backup import restore as read  # noqa: PLC0415

    opened = await _connected(log, log_stream, **promises)
    try:
        with bars() as progress:
            return await read(opened, source, target, progress)
    finally:
        await opened.close()


async def _connected(
    log: str,
    log_stream: str,
    *,
    log_monitor: str = "",
    log_replicas: int = 3,
    log_unsafe: bool = False,
) -> JetStreamLog:
    from cluster.jetstream import JetStreamOptions, connected_log  # noqa: PLC0415

    monitors = [one for one in log_monitor.split(",") if one]
    options = JetStreamOptions(log.split(","), monitors, log_stream, log_replicas, log_unsafe)
    return await connected_log(options)


async def _fetch(target: Target, part: Path, progress: Callable[[str, int, int], None]) -> None:
    """Copy the store of the first server that sends it."""
    from server.replication.joining import CopyError  # noqa: PLC0415
    from server.transport.snapshot_client import NodeAccess, channel_credentials, copy_snapshot  # noqa: PLC0415

    token, tls = target.credentials()
    credentials = None if tls is None else channel_credentials(tls)
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
