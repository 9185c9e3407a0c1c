"""`nearcast top`."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.failures import WrongUseError, reported
from cli.numbers import FiniteRange
from cli.target_options import RESPONSE_S, AskingCommand, Target, access_options, server_option

if TYPE_CHECKING:
    from cli.top_frame import History
    from nearcast import Client

_WIDTH = 110
"""Columns of the SVG picture."""


@click.command(cls=AskingCommand, epilog="Example: nearcast top --server example.org --tls")
@server_option
@access_options
@click.option(
    "--interval-s",
    type=FiniteRange(0.1, 3600),
    default=1.0,
    show_default=True,
    help="Interval between two frames.",
)
@click.option("--once", is_flag=True, help="Show one frame, after one interval, and end.")
@click.option(
    "--frames", type=click.IntRange(1), help="End after this number of frames; only the last is shown."
)
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the last frame to this file, as an SVG picture; nothing if there was no response.",
)
def top(
    interval_s: float,
    frames: int | None,
    *,
    once: bool,
    svg: Path | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Watch a server: rates, latencies, devices by state, queues, sizes. Ctrl-C ends it.

    Latencies are the median and the 99th percentile of the last interval. With --once or --frames the
    exit status is 1 if the server does not respond.
    """
    from cli.top_frame import History  # noqa: PLC0415
    from nearcast import NearcastError  # noqa: PLC0415

    if svg is not None and not svg.parent.is_dir():
        raise WrongUseError(f"--svg is {svg}, must be in a folder that exists")
    target, history = Target(**options), History()
    try:
        with reported(NearcastError):
            asyncio.run(_watch(target, history, interval_s, 1 if once else frames))
    except KeyboardInterrupt:
        click.echo()
    finally:
        if svg is not None and history.has_response:
            _draw(history, target, svg)


async def _watch(target: Target, history: History, interval_s: float, frames: int | None) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from nearcast import UnavailableError  # noqa: PLC0415

    console = Console(width=None if Console().is_terminal else _WIDTH)
    async with target.connect(limit_s=None) as client:
        if frames is not None:
            await _look(client, target, history)
            for _ in range(frames):
                await asyncio.sleep(interval_s)
                await _look(client, target, history)
            console.print(history.frame(target.server))
            return
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            show = partial(live.update, refresh=True) if console.is_terminal else console.print
            while True:
                try:
                    await _look(client, target, history)
                    show(history.frame(target.server))
                except UnavailableError as error:
                    show(f"{target.server}: {target.explained(error)}")
                await asyncio.sleep(interval_s)


async def _look(client: Client, target: Target, history: History) -> None:
    from cli.top_frame import Sample  # noqa: PLC0415
    from nearcast import UnavailableError  # noqa: PLC0415

    try:
        async with asyncio.timeout(RESPONSE_S):
            found = await client.status()
    except TimeoutError:
        raise UnavailableError(target.silent(RESPONSE_S)) from None
    history.add(Sample(time.monotonic(), found))


def _draw(history: History, target: Target, file: Path) -> None:
    """Write the last frame as SVG.

    Raises
    ------
    click.ClickException
        If the file cannot be written.
    """
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    console = Console(record=True, width=_WIDTH, file=StringIO(), force_terminal=True)
    console.print(history.frame(target.server))
    try:
        console.save_svg(str(file), title=f"nearcast top {target.server}")
    except OSError as error:
        raise click.ClickException(f"--svg {file} cannot be written: {error.strerror}") from None
