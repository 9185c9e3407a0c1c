"""Progress of long work on standard error: a bar for each stage, or lines if it is not a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

Report = Callable[[str, int, int], None]

COMPILING = "compiling kernels, once on this machine"
"""Stage of commands that need kernels that are not compiled yet."""

_LINE_S = 30.0
"""Seconds between two lines about a stage that is not done."""

_STEPS_FEW = 10
"""A stage with at most this many steps has no rate."""


@contextmanager
def bars() -> Iterator[Report]:
    """Yield a function report(stage, done, total) that shows the progress of each stage.

    A total of 0 is unknown: the bar then shows only activity and the number of steps done. A stage that
    is reported with fewer steps than before, or again after its end, has begun again: rate and remaining
    time are those of this round.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    tasks: dict[str, TaskID] = {}
    rounds = _Rounds()
    with _progress(console) as progress:

        def report(stage: str, done: int, total: int) -> None:
            is_new = rounds.begins(stage, done, total)
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total or None)
            elif is_new:
                progress.reset(tasks[stage])
            progress.update(tasks[stage], completed=done, total=total or None)

        yield report


@contextmanager
def kernel_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function report(done, total) that shows a bar while kernels are compiled.

    If standard error is not a terminal, yield None: a server then writes to its log.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with ExitStack() as shown:
        bar: list[tuple[Progress, TaskID]] = []

        def report(done: int, total: int) -> None:
            if not bar:
                progress = shown.enter_context(_progress(console))
                bar.append((progress, progress.add_task(COMPILING, total=total)))
            progress, task = bar[0]
            progress.update(task, completed=done)
            if done == total:
                shown.close()

        yield report


class _Rounds:
    """How far the stages are, some of which begin again."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, bool]] = {}
        """The steps of each stage that were reported last, and whether they were all."""

    def begins(self, stage: str, done: int, total: int) -> bool:
        """Record a report; return whether the stage begins with it."""
        before, was_over = self._latest.get(stage, (0, True))
        self._latest[stage] = done, 0 < total <= done
        return was_over or done < before


class _RateColumn(ProgressColumn):
    """Steps per second of stages with more than a few steps."""

    def render(self, task: Task) -> Text:
        """Return the rate, or an empty text if it is not meaningful."""
        speed = task.finished_speed or task.speed
        if speed is None or speed < 1.0 or (task.total or 0) <= _STEPS_FEW:
            return Text("")
        return Text(f"{speed:,.0f}/s")


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)


def _lines(console: Console) -> Report:
    """Return a report function that writes a line when a stage is done, and every `_LINE_S`."""
    printed_s = time.monotonic()
    rounds = _Rounds()
    began_s: dict[str, float] = {}
    ended: set[str] = set()

    def report(stage: str, done: int, total: int) -> None:
        nonlocal printed_s
        now_s = time.monotonic()
        if rounds.begins(stage, done, total):
            began_s[stage] = now_s
        is_over = 0 < total <= done and stage not in ended
        if is_over or now_s - printed_s >= _LINE_S:
            printed_s = now_s
            if is_over:
                ended.add(stage)
            of_total = f" of {total:,}" if total else ""
            pace = _pace(done, total, now_s - began_s[stage])
            console.print(f"{stage}: {done:,}{of_total}{pace}", highlight=False, soft_wrap=True)

    return report


def _pace(done: int, total: int, took_s: float) -> str:
    """Format the rate and the remaining time; return an empty text if they are not meaningful."""
    if total <= _STEPS_FEW or took_s < 1.0 or not done:
        return ""
    rate = done / took_s
    left = f", {(total - done) / rate:,.0f} s left" if done < total else f" in {took_s:,.0f} s"
    return (f", {rate:,.0f}/s" if rate >= 1.0 else "") + left
