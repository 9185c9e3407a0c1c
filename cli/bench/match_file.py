"""`nearcast bench match-file`."""

from __future__ import annotations

from pathlib import Path

import click

from bench.errors import BenchError
from cli.failures import reported
from cli.progress import bars

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    name="match-file",
    epilog="Example: nearcast bench match-file subs.tsv objects.tsv --index ap-tree --out matches.tsv",
)
@click.argument("subscriptions", metavar="SUBS.tsv", type=_FILE)
@click.argument("objects", metavar="OBJECTS.tsv", type=_FILE)
@click.option("--index", "name", help="Which index; see below.  [default: the server's]")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the pairs, object<TAB>subscription, sorted by number.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    default=1_000,
    show_default=True,
    help="Objects a call, when they come in batches.",
)
def match_file(
    subscriptions: Path, objects: Path, name: str | None, out: Path | None, batch: int
) -> None:
    """Match a file of boolean subscriptions with a file of objects.

    Each line of SUBS.tsv is `id x1 y1 x2 y2 keyword,keyword,...`, a closed rectangle and what is
    required; each of OBJECTS.tsv is `id x y keyword,keyword,...`. Tabs are between the fields;
    coordinates are on a plane, in any unit. Keywords are compared letter by letter.

    Indexes: those of the server (naive, ap-tree, inverted-grid, iq-tree-subscriptions, rq-tree) and what
    one would take instead: dict and numba-dict (keyed by rarest keyword and cell) and strtree (shapely).
    """
    from bench.match_file.run import match_files  # noqa: PLC0415
    from index.catalogue import DEFAULT_CLAUSE_INDEX  # noqa: PLC0415

    with reported(BenchError), bars() as progress:
        report = match_files(subscriptions, objects, name or DEFAULT_CLAUSE_INDEX, out, batch, progress)
    click.echo(f"subscriptions: {report.subscriptions}, read with the objects in {report.read_s:.2f} s")
    click.echo(f"objects: {report.objects}, matches: {report.matches}")
    click.echo(f"load time: {report.load_s:.3f} s, index: {report.index_bytes / 2**20:.1f} MB")
    for label, times in (("one at a time", report.single_us), (f"batches of {batch}", report.batch_us)):
        click.echo(
            f"{label}, us per object: mean {times.mean:.3f}, p50 {times.p50:.3f}, p99 {times.p99:.3f}"
        )
    click.echo(f"peak memory: {report.peak_mb:.0f} MB")
    if out is not None:
        click.echo(str(out))
