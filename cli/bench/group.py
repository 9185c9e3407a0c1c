"""`nearcast bench`: the group."""

from __future__ import annotations

import click

from cli.bench.ap_plus import ap_plus
from cli.bench.ap_tree import ap_tree
from cli.bench.berlinmod import berlinmod
from cli.bench.door import door
from cli.bench.draw_file import draw_file
from cli.bench.dskype import dskype
from cli.bench.experiments import list_, run
from cli.bench.match import match
from cli.bench.match_file import match_file
from cli.bench.neighbours import neighbours
from cli.bench.publish import publish
from cli.bench.ranges import ranges
from cli.bench.recovery import recovery
from cli.bench.retrieve import retrieve
from cli.bench.rt_tree import rt_tree
from cli.bench.server import server
from cli.bench.silence import silence
from cli.bench.skype import skype


@click.group()
def bench() -> None:
    r"""Measure: the papers' experiments and the peers, audited by sample against the oracle.

    Real data is read from the folder that the variable NEARCAST_DATA names; the data set synthetic needs
    none. The papers are cited in docs/performance.md. Rows go to the screen and, with --json, to a file.
    """


bench.add_command(ap_plus)
bench.add_command(ap_tree)
bench.add_command(berlinmod)
bench.add_command(door)
bench.add_command(draw_file)
bench.add_command(list_)
bench.add_command(match)
bench.add_command(match_file)
bench.add_command(neighbours)
bench.add_command(publish)
bench.add_command(recovery)
bench.add_command(retrieve)
bench.add_command(server)
bench.add_command(ranges)
bench.add_command(silence)
bench.add_command(rt_tree)
bench.add_command(skype)
bench.add_command(dskype)
bench.add_command(run)
