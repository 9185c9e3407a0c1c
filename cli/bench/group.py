"""`nearcast bench`: the group."""

from __future__ import annotations

import click

from cli.bench.door import door
from cli.bench.draw_file import draw_file
from cli.bench.experiments import list_, run
from cli.bench.match_file import match_file
from cli.bench.neighbours import neighbours
from cli.bench.server import server


@click.group()
def bench() -> None:
    r"""Measure: the papers' experiments and the peers, audited by sample against the oracle.

    Real data is read from the folder that the variable NEARCAST_DATA names; the data set synthetic needs
    none. The papers are cited in docs/performance.md. Rows go to the screen and, with --json, to a file.
    """


bench.add_command(door)
bench.add_command(draw_file)
bench.add_command(list_)
bench.add_command(match_file)
bench.add_command(neighbours)
bench.add_command(server)
bench.add_command(run)
