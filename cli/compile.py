"""`nearcast compile`."""

from __future__ import annotations

import time

import click

from cli.failures import WrongUseError
from cli.progress import COMPILING, bars
from index.catalogue import KINDS
from index.entry import Kind

_HELP = (
    "For servers with this one, of `nearcast indexes`; repeat for more, or say all.  "
    "[default: the server's]"
)


@click.command(name="compile", epilog="Example: NUMBA_CACHE_DIR=/opt/kernels nearcast compile")
@click.option(
    "--object-index",
    "object_indexes",
    multiple=True,
    help=_HELP,
)
@click.option(
    "--subscription-index",
    "subscription_indexes",
    multiple=True,
    help=_HELP,
)
@click.option(
    "--clause-index",
    "clause_indexes",
    multiple=True,
    help=_HELP,
)
@click.option(
    "--moving-index",
    "moving_indexes",
    multiple=True,
    help=_HELP,
)
def compile_(
    object_indexes: tuple[str, ...],
    subscription_indexes: tuple[str, ...],
    clause_indexes: tuple[str, ...],
    moving_indexes: tuple[str, ...],
) -> None:
    """Compile the kernels of a server before it starts: for images and packages.

    Without this command, a server compiles them when it first starts on a machine. The compiled code is
    in the folder that NUMBA_CACHE_DIR names, or in the user's cache. It is valid for this version of
    nearcast and this kind of processor.
    """
    from safe_region.jit.cache import CACHE_FOLDER  # noqa: PLC0415
    from server.runtime.warmup import IndexNames, compile_kernels  # noqa: PLC0415
    from server.transport.wire_walk import warm_up_walk  # noqa: PLC0415

    names = IndexNames(
        _chosen(object_indexes, KINDS["object_index"]),
        _chosen(subscription_indexes, KINDS["subscription_index"]),
        _chosen(clause_indexes, KINDS["clause_index"]),
        _chosen(moving_indexes, KINDS["moving_index"]),
    )
    began_s = time.monotonic()
    with bars() as progress:
        count = compile_kernels(names, lambda done, total: progress(COMPILING, done, total), warm_up_walk)
    click.echo(f"{count} kernels compiled in {time.monotonic() - began_s:.0f} s: {CACHE_FOLDER}")


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
