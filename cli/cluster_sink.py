"""`nearcast cluster end-sink`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.cluster_log import PROMISES, connected, run, settings_of
from cli.options import ModelCommand, log_settings

if TYPE_CHECKING:
    from server.log_settings import LogSettings


@click.command(
    "end-sink",
    cls=ModelCommand,
    model=log_settings,
    without=PROMISES,
    epilog="Example: nearcast cluster end-sink --log nats://log1:4222,nats://log2:4222,nats://log3:4222",
)
def end_sink(**options: Any) -> None:  # noqa: ANN401
    """End the sink of a cluster, and delete the changes that wait for it.

    Nodes keep every change of an object until it was written to the sink, also while no node has --sink.
    First start all nodes without --sink; this command then lets them keep changes no longer. A node with
    --sink begins again, with the next change.
    """
    settings = settings_of(options)
    run(lambda: _end(settings))
    click.echo("the sink has ended")


async def _end(settings: LogSettings) -> None:
    from cluster.key_shared_records import KeySharedRecords  # noqa: PLC0415
    from server.replication.ending_sink import end_sink as end  # noqa: PLC0415

    log = await connected(settings)
    try:
        await end(log, KeySharedRecords(log.keys))
    finally:
        await log.close()
