"""`nearcast bench`: the group."""

from __future__ import annotations

import click

from nearcast.cli.bench.lamps import lamps
from nearcast.cli.bench.match import match
from nearcast.cli.bench.publish import publish
from nearcast.cli.bench.recovery import recovery
from nearcast.cli.bench.retrieve import retrieve
from nearcast.cli.bench.server import server
from nearcast.cli.bench.silence import silence


@click.group()
def bench() -> None:
    r"""Measure: the papers' experiments and the peers, audited by sample against the oracle.

    Real data is read from the folder that NEARCAST_DATA names (default ../shared/data); the data set
    synthetic needs none. Rows go to the screen and, with --json, to a file
    {bench, parameters, environment, rows}.
    """


bench.add_command(lamps)
bench.add_command(match)
bench.add_command(publish)
bench.add_command(recovery)
bench.add_command(retrieve)
bench.add_command(server)
bench.add_command(silence)
