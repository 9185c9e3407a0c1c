"""`nearcast compile`."""

from __future__ import annotations

import time

import click

from cli.progress import COMPILING, bars


@click.command(name="compile", epilog="Example: NUMBA_CACHE_DIR=/opt/kernels nearcast compile")
@click.option(
    "--object-index",
    "object_indexes",
    multiple=True,
    help="For servers with this one; repeat for more, or say all.  [default: the server's]",
)
@click.option(
    "--subscription-index",
    "subscription_indexes",
    multiple=True,
    help="For servers with this one; repeat for more, or say all.  [default: the server's]",
)
@click.option(
    "--clause-index",
    "clause_indexes",
    multiple=True,
    help="For servers with this one; repeat for more, or say all.  [default: the server's]",
)
@click.option(
    "--moving-index",
    "moving_indexes",
    multiple=True,
    help="For servers with this one; repeat for more, or say all.  [default: the server's]",
)
def compile_(
    object_indexes: tuple[str, ...],
    subscription_indexes: tuple[str, ...],
    clause_indexes: tuple[str, ...],
    moving_indexes: tuple[str, ...],
) -> None:
    """Compile what a server needs, before it starts: for images and packages.

    A server does it itself when it starts for the first time on a machine. What is compiled is kept in
    the folder that NUMBA_CACHE_DIR names, else in the user's cache; it is for this version of nearcast
    and for this kind of processor.
    """
    from index.catalogue import (  # noqa: PLC0415
        CLAUSE_INDEXES,
        DEFAULT_CLAUSE_INDEX,
        DEFAULT_MOVING_INDEX,
        DEFAULT_OBJECT_INDEX,
        DEFAULT_SUBSCRIPTION_INDEX,
        MOVING_INDEXES,
        NO_INDEX,
        OBJECT_INDEXES,
        SUBSCRIPTION_INDEXES,
    )
    from safe_region.jit.cache import CACHE_FOLDER  # noqa: PLC0415
    from server.runtime.warmup import IndexNames, compile_kernels  # noqa: PLC0415
    from server.transport.wire_walk import warm_up_walk  # noqa: PLC0415

    names = IndexNames(
        _chosen(object_indexes, list(OBJECT_INDEXES), DEFAULT_OBJECT_INDEX),
        _chosen(subscription_indexes, list(SUBSCRIPTION_INDEXES), DEFAULT_SUBSCRIPTION_INDEX),
        _chosen(clause_indexes, list(CLAUSE_INDEXES), DEFAULT_CLAUSE_INDEX),
        _chosen(moving_indexes, [NO_INDEX, *MOVING_INDEXES], DEFAULT_MOVING_INDEX),
    )
    began_s = time.monotonic()
    with bars() as progress:
        count = compile_kernels(names, lambda done, total: progress(COMPILING, done, total), warm_up_walk)
    click.echo(f"{count} kernels compiled in {time.monotonic() - began_s:.0f} s: {CACHE_FOLDER}")


def _chosen(names: tuple[str, ...], known: list[str], default: str) -> list[str]:
    """Return the names that are wanted.

    Raises
    ------
    click.BadParameter
        If one is not known.
    """
    if "all" in names:
        return known
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name} is none of {', '.join(known)}, all")
    return list(names) or [default]
