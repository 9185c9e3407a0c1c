"""`nearcast bench draw-file` and `match-file`: boolean subscriptions and objects as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench.errors import BenchError
from cli.failures import refused, reported
from cli.numbers import FiniteRange
from cli.progress import bars

_NEW = click.Path(dir_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COUNT = click.IntRange(1, 10_000_000)


@click.command(
    name="draw-file",
    epilog="Example: nearcast bench draw-file subs.tsv objects.tsv --side-max 0.01",
)
@click.argument("subscriptions_path", metavar="SUBS.tsv", type=_NEW)
@click.argument("objects_path", metavar="OBJECTS.tsv", type=_NEW)
@click.option("--subscriptions", type=_COUNT, default=100_000, show_default=True)
@click.option("--objects", type=_COUNT, default=10_000, show_default=True)
@click.option(
    "--side-max",
    type=FiniteRange(0.0, 1.0, min_open=True),
    help="Maximum side of rectangles, as a fraction of the side of the space; sides are uniform.  "
    "[default: as in the paper]",
)
@click.option("--data", default="messages", show_default=True, help="See `nearcast bench list ap-tree`.")
@click.option("--seed", type=int, default=1, show_default=True)
def draw_file(subscriptions_path: Path, objects_path: Path, **drawn: Any) -> None:  # noqa: ANN401
    """Draw files for `nearcast bench match-file`: boolean subscriptions, and objects.

    A subscription has 1 to 5 keywords of a random object, and a rectangle about the object. The same
    options draw the same files. Existing files are overwritten.
    """
    from bench.ap_tree.experiments import ApTreeParameters  # noqa: PLC0415
    from bench.match_file.draw import draw_files  # noqa: PLC0415
    from feeds.parameters import ParameterError  # noqa: PLC0415

    with refused(ParameterError), reported(BenchError):
        draw_files(subscriptions_path, objects_path, ApTreeParameters(history=0, **drawn))
    click.echo(str(subscriptions_path))
    click.echo(str(objects_path))


@click.command(
    name="match-file",
    epilog="Example: nearcast bench match-file subs.tsv objects.tsv --index ap-tree --out matches.tsv",
)
@click.argument("subscriptions", metavar="SUBS.tsv", type=_FILE)
@click.argument("objects", metavar="OBJECTS.tsv", type=_FILE)
@click.option("--index", "name", help="Index; see below.  [default: that of the server]")
@click.option("--out", type=_NEW, help="File for the pairs, object<TAB>subscription, sorted by number.")
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    default=1_000,
    show_default=True,
    help="Objects per call when they are matched in batches.",
)
def match_file(
    subscriptions: Path, objects: Path, name: str | None, out: Path | None, batch: int
) -> None:
    """Match a file of boolean subscriptions with a file of objects.

    Each line of SUBS.tsv is `id x1 y1 x2 y2 keyword,keyword,...`, a closed rectangle and the required
    keywords. Each line of OBJECTS.tsv is `id x y keyword,keyword,...`. Tabs separate the fields.
    Coordinates are on a plane, in any unit. Keywords are compared letter by letter.

    Indexes: those of the server (naive, ap-tree, inverted-grid, iq-tree-subscriptions, rq-tree) and
    alternatives: dict and numba-dict (keyed by rarest keyword and cell) and strtree (shapely).
    """
    from bench.match_file.run import match_files  # noqa: PLC0415
    from index.catalogue import DEFAULT_CLAUSE_INDEX  # noqa: PLC0415

    with reported(BenchError), bars() as progress:
        report = match_files(subscriptions, objects, name or DEFAULT_CLAUSE_INDEX, out, batch, progress)
    click.echo(f"subscriptions: {report.subscriptions}, read with the objects in {report.read_s:.2f} s")
    click.echo(f"objects: {report.objects}, matches: {report.matches}")
    click.echo(f"load time: {report.load_s:.3f} s, index: {report.index_bytes / 2**20:.1f} MB")
    for label, times in (("one at a time", report.single), (f"batches of {batch}", report.batch)):
        click.echo(
            f"{label}, us per object: mean {times.mean():.3f}, p50 {times.quantile(0.5):.3f}, "
            f"p99 {times.quantile(0.99):.3f}"
        )
    click.echo(f"peak memory: {report.peak_mb:.0f} MB")
    if out is not None:
        click.echo(str(out))
