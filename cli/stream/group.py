"""`nearcast stream`: the group."""

from __future__ import annotations

import click

from cli.stream.demo import demo
from cli.stream.results import audit, compact, lists, rebalance, release
from cli.stream.run import run


@click.group()
def stream() -> None:
    """Run the distributed system: exact results over a stream of messages, on Spark."""


stream.add_command(run)
stream.add_command(lists)
stream.add_command(compact)
stream.add_command(audit)
stream.add_command(rebalance)
stream.add_command(release)
stream.add_command(demo)
