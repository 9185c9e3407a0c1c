"""`python -m tests.cluster`: stream jobs on three hosts of their own, struck by faults."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from streaming.distribution import MECHANISMS
from tests.cluster.cluster_job import Size
from tests.cluster.faults import FAULTS
from tests.cluster.hosts import missing
from tests.cluster.run import Outcome, What
from tests.cluster.side_by_side import measured
from tests.cluster.simulation import SIMULATION

_SHOWN = 20
_WIDTH = 160


@click.command()
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice([*MECHANISMS, SIMULATION]),
    help="Only these; the simulator is one.",
)
@click.option("--fault", "faults", multiple=True, type=click.Choice([*FAULTS]), help="Only these.")
@click.option(
    "--times",
    default=1,
    show_default=True,
    help="How often each fault strikes, with --once and without it.",
)
@click.option("--batches", default=10, show_default=True, help="Batches that --once reads first.")
@click.option("--subscriptions", default=20_000, show_default=True)
@click.option("--window", default=20_000, show_default=True)
@click.option("--batch", default=1_000, show_default=True, help="Messages of a batch.")
@click.option("--partitions", default=4, show_default=True)
@click.option("--sample", default=40, show_default=True, help="Results compared behind each batch.")
@click.option("--seed", default=1, show_default=True, help="Decides everything but the timing.")
@click.option("--jobs", default=1, show_default=True, help="How many run side by side.")
@click.option("--keep", is_flag=True, help="Leave the folders of jobs, with all logs.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where to write the figures.")
def main(  # noqa: PLR0913 - an option each
    mechanisms: tuple[str, ...],
    faults: tuple[str, ...],
    times: int,
    batches: int,
    subscriptions: int,
    window: int,
    batch: int,
    partitions: int,
    sample: int,
    seed: int,
    jobs: int,
    *,
    keep: bool,
    path: Path | None,
) -> None:
    """Run stream jobs on three hosts, which are network namespaces of this machine; fail if one is wrong.

    Needs root and iproute2.
    """
    if reason := missing():
        click.echo(f"skipped: {reason}", err=True)
        return
    size = Size(subscriptions, window, batch, partitions)
    what = What(size, faults or tuple(FAULTS), batches, times, sample, seed, keep)
    outcomes = measured(mechanisms or (*MECHANISMS, SIMULATION), what, jobs)
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(_table(outcomes, what.faults))
    if path is not None:
        about = {"size": size._asdict(), "seed": seed, "python": platform.python_version()}
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**about, "jobs": [asdict(outcome) for outcome in outcomes]}, indent=1)
        path.write_text(text + "\n")
    wrong = [f"{outcome.mechanism}: {text}" for outcome in outcomes for text in outcome.wrong]
    for text in wrong[:_SHOWN]:
        click.echo(text[:3000], err=True)
    sys.exit(bool(wrong))


def _table(outcomes: list[Outcome], faults: tuple[str, ...]) -> Table:
    table = Table(
        title="Jobs on three hosts: seconds to the next batch after a fault", box=box.SIMPLE_HEAD
    )
    table.add_column("mechanism", no_wrap=True)
    for title in (*faults, "batches", "results", "changes", "evaluated", "wrong", "seconds"):
        table.add_column(title, justify="right")
    for outcome in outcomes:
        times = (", ".join(f"{one:.0f}" for one in outcome.faults.get(fault, [])) for fault in faults)
        counts = (f"{count:,}" for count in (outcome.batches, outcome.results, outcome.changes))
        rest = f"{outcome.evaluated_steady:.3f}", str(len(outcome.wrong)), f"{outcome.seconds:.0f}"
        table.add_row(outcome.mechanism, *times, *counts, *rest)
    return table


if __name__ == "__main__":
    main()
