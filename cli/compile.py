"""`nearcast compile`."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from cli.failures import WrongUseError, reported
from cli.progress import COMPILING, bars
from index.catalogue import KINDS
from index.entry import Kind


def _index_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each kind of index."""
    for kind in reversed(KINDS.values()):
        text = f"Index for {kind.name}; repeat it for more, or name 'all'. See `nearcast indexes`.  "
        text += f"[default: {kind.default}]"
        command = click.option(kind.flag, kind.setting, multiple=True, metavar="NAME", help=text)(command)
    return command


@click.command(name="compile", epilog="Example: NUMBA_CACHE_DIR=/opt/kernels nearcast compile")
@_index_options
@click.option(
    "--spark",
    "with_spark",
    is_flag=True,
    help="Also archive Spark's classes, so that simulations and stream jobs start some seconds sooner. "
    "This takes a minute and 200 MB of the user's cache, and is valid for this Java and this Spark.",
)
def compile_(*, with_spark: bool, **names: tuple[str, ...]) -> None:
    """Compile the kernels of a server before it starts: for images and packages.

    Without this command, a server compiles them when it first starts on a machine. The compiled code is
    in the folder that NUMBA_CACHE_DIR names, or in the user's cache. It is valid for this version of
    nearcast and this kind of processor.
    """
    from safe_region.jit.ahead import NotKeptError, require_cache  # noqa: PLC0415
    from safe_region.jit.cache import CACHE_FOLDER  # noqa: PLC0415
    from server.runtime.warmup import IndexNames, compile_kernels  # noqa: PLC0415
    from server.transport.wire_walk import warm_up_walk  # noqa: PLC0415

    chosen = [_chosen(names[setting], kind) for setting, kind in KINDS.items()]
    began_s = time.monotonic()
    with reported(NotKeptError), bars() as progress:
        require_cache()

        def report(done: int, total: int) -> None:
            progress(COMPILING, done, total)

        count = compile_kernels(IndexNames(*chosen), report, warm_up_walk)
    click.echo(f"{count} kernels compiled in {time.monotonic() - began_s:.0f} s: {CACHE_FOLDER}")
    if with_spark:
        _archive_classes()


def _archive_classes() -> None:
    """Write the archive of Spark's classes.

    Raises
    ------
    click.ClickException
        If there is no Java, or it wrote no archive.
    """
    from feeds.class_archive import ArchiveError, write_archive  # noqa: PLC0415
    from feeds.java import JavaNotFoundError  # noqa: PLC0415

    began_s = time.monotonic()
    try:
        archive = write_archive()
    except (ArchiveError, JavaNotFoundError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Spark's classes archived in {time.monotonic() - began_s:.0f} s: {archive}")


def _chosen(names: tuple[str, ...], kind: Kind) -> tuple[str, ...]:
    """Return the requested names of indexes.

    Raises
    ------
    WrongUseError
        If a name is unknown.
    """
    if "all" in names:
        return kind.names
    for name in names:
        if name not in kind.names:
            raise WrongUseError(f"{kind.flag} is {name!r}, must be all or {kind.limit(name)}")
    return names or (kind.default,)
