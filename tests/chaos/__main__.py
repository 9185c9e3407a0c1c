"""`python -m tests.chaos`: real server processes, real faults, and an audit after each."""

from __future__ import annotations

import asyncio
import json
import platform
import shutil
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from cli.progress import bars
from cluster.local_servers import program
from tests.chaos.cluster.faults import FAULTS as CLUSTER_FAULTS
from tests.chaos.cluster.run import strike_cluster
from tests.chaos.run import KILL, NAMES, run
from tests.chaos.stream_faults import REDIS_KILLED, STREAM_FAULTS
from tests.chaos.tally import Tally

_SHOWN = 20


@click.command()
@click.option("--kills", default=100, show_default=True, help="Times the server is killed.")
@click.option("--others", default=20, show_default=True, help="Times for each other fault of a server.")
@click.option("--streams", default=2, show_default=True, help="Times for each fault of the stream job.")
@click.option("--cluster", default=1, show_default=True, help="Times for each fault of a cluster.")
@click.option("--nodes", default=3, show_default=True, help="Nodes of the cluster.")
@click.option("--pause-s", default=30.0, show_default=True, help="For how long a node is paused.")
@click.option(
    "--devices", default=200, show_default=True, help="Devices at each server, and of the cluster."
)
@click.option("--seed", default=1, show_default=True, help="Decides everything but the timing.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=click.Choice((*NAMES, *CLUSTER_FAULTS)),
    help="Only these; repeat.",
)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Where to write the figures.")
def main(faults: tuple[str, ...], path: Path | None, *, seed: int, pause_s: float, **counts: int) -> None:
    """Strike servers with faults under load; fail on a wrong list or a lost acknowledged command."""
    wanted = {
        name: counts["kills" if name == KILL else "streams" if name in STREAM_FAULTS else "others"]
        for name in faults or NAMES
        if name in NAMES
    }
    of_cluster = _of_cluster(faults, counts["cluster"])
    if shutil.which("redis-server") is None and wanted.pop(REDIS_KILLED, 0):
        click.echo(f"{REDIS_KILLED}: skipped, redis-server is not installed", err=True)
    with tempfile.TemporaryDirectory(prefix="nearcast-chaos-") as folder, bars() as progress:
        tallies = asyncio.run(run(wanted, Path(folder), counts["devices"], seed, progress))
        if of_cluster:
            place = Path(folder) / "cluster"
            sizes = (counts["nodes"], counts["devices"])
            tallies += asyncio.run(strike_cluster(of_cluster, place, sizes, seed, pause_s, progress))
    wanted |= of_cluster
    Console().print(_table(tallies))
    if of_cluster:
        Console().print(_cluster_table([one for one in tallies if one.fault in of_cluster]))
    if path is not None:
        about = {"devices": counts["devices"], "seed": seed, "python": platform.python_version()}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps({**about, "faults": [asdict(one) for one in tallies]}, indent=1) + "\n"
        )
    wrong = [f"{one.fault}: {text}" for one in tallies for text in one.violations]
    for text in wrong[:_SHOWN]:
        click.echo(text[:1000], err=True)
    sys.exit(bool(wrong) or any(one.injected < wanted[one.fault] for one in tallies))


def _of_cluster(faults: tuple[str, ...], count: int) -> dict[str, int]:
    """Return the faults of the cluster and how often each is wanted."""
    wanted = {name: count for name in faults or CLUSTER_FAULTS if name in CLUSTER_FAULTS and count}
    if wanted and program() is None:
        click.echo("faults of a cluster: skipped, nats-server is not installed", err=True)
        return {}
    return wanted


def _cluster_table(tallies: list[Tally]) -> Table:
    table = Table(
        title="Faults of the cluster", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    table.add_column("fault", no_wrap=True)
    for title in ("times", "wrong", "lost", "stale writes", "writes", "exact again: median s", "worst s"):
        table.add_column(title, justify="right")
    for one in tallies:
        wrong = len(one.violations) - one.lost - one.stale
        counts = (one.injected, wrong, one.lost, one.stale, one.writes)
        seconds = (
            [f"{statistics.median(one.exact_s):.1f}", f"{max(one.exact_s):.1f}"] if one.exact_s else []
        )
        table.add_row(one.fault, *(f"{count:,}" for count in counts), *seconds)
    return table


def _table(tallies: list[Tally]) -> Table:
    table = Table(
        title="Faults and what they broke", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    table.add_column("fault", no_wrap=True)
    for title in ("times", "violations", "lists", "commands", "refused", "seconds"):
        table.add_column(title, justify="right")
    for one in tallies:
        counts = (one.injected, len(one.violations), one.lists, one.commands, one.refused)
        table.add_row(one.fault, *(f"{count:,}" for count in counts), f"{one.seconds:.0f}")
    return table


if __name__ == "__main__":
    main()
