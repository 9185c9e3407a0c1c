"""`nearcast bench`: the group."""

from __future__ import annotations

import click

from cli.bench.experiments import list_, run
from cli.bench.files import draw_file, match_file


@click.group()
def bench() -> None:
    """Run the papers' experiments and peers as benchmarks, audited by sample against the oracle.

    Real data is read from the folder that the variable NEARCAST_DATA names; the data set synthetic needs
    none. The papers are cited in docs/performance.md.
    """


bench.add_command(draw_file)
bench.add_command(list_)
bench.add_command(match_file)
bench.add_command(run)
