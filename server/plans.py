"""Plans: commands that were decided on, and how those of a batch are carried out together.

Nothing here can fail: a plan is valid, and what had to be durable is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from server import commands as c
from server.errors import RefusalError
from server.model import LiveObject
from server.rows import Row
from server.switchboard import Switchboard
from server.waiting import Entry

EVERYTHING = "everything"
"""What a plan touches that must be the last of its batch."""


class Publication(NamedTuple):
    """What a publish command comes to."""

    fresh: Sequence[LiveObject]
    replaced: Sequence[int]
    ids: list[int]
    """Of all that were asked for."""


@dataclass(slots=True)
class Plan:
    """A validated command: what must be durable, what it touches, and how to carry it out."""

    apply: Callable[[], object]
    rows: tuple[Row, ...] = ()
    touches: frozenset[Hashable] = frozenset()
    joint: Publication | c.Report | None = None
    """Set instead of `apply` being called: neighbours of a kind are carried out as one batch."""
    is_aside: bool = False
    """Whether it changes only what its own device is told: reports on both sides of it are one batch."""


class Step(NamedTuple):
    """Publications that are one batch; or reports that are one, and what is carried out after them."""

    publications: list[tuple[int, Publication]]
    reports: list[c.Report]
    others: list[tuple[int, Plan]]
    """Plans, like publications, with their places in the batch."""


def steps(plans: Sequence[Plan]) -> Iterator[Step]:
    """Divide plans into steps, in order.

    Publications gather while they are neighbours, reports until something comes that concerns others.
    """
    step = Step([], [], [])
    for place, plan in enumerate(plans):
        is_publication = isinstance(plan.joint, Publication)
        if step.publications if not is_publication else step.reports or step.others:
            yield step
            step = Step([], [], [])
        if isinstance(plan.joint, Publication):
            step.publications.append((place, plan.joint))
        elif plan.joint is not None:
            step.reports.append(plan.joint)
        else:
            step.others.append((place, plan))
            if not plan.is_aside:
                yield step
                step = Step([], [], [])
    if any(step):
        yield step


def carry_out(board: Switchboard, step: Step, replies: list[object]) -> None:
    """Carry out all of a step but its reports, and note the replies to its plans at their places.

    Parameters
    ----------
    board
        What changes.
    step
        One of `steps`: those before it and its reports have been carried out.
    replies
        A place for each plan of the batch.
    """
    if step.publications:
        board.publish(
            [item for _, one in step.publications for item in one.fresh],
            [old_id for _, one in step.publications for old_id in one.replaced],
        )
    for place, publication in step.publications:
        replies[place] = publication.ids
    for place, plan in step.others:
        replies[place] = plan.apply()


def apply(board: Switchboard, plans: Sequence[Plan]) -> list[object]:
    """Carry plans out in order; return a reply for each."""
    replies: list[object] = [None] * len(plans)
    for step in steps(plans):
        board.anchor(board.hear(step.reports))
        carry_out(board, step, replies)
    return replies


def answer(
    board: Switchboard,
    batch: Sequence[Entry],
    planned: Sequence[Plan | RefusalError],
    replies: Iterable[object],
) -> None:
    """Tell whoever waits for commands what became of them; a device is told only of refusals.

    Parameters
    ----------
    board
        Where devices are told.
    batch, planned
        The commands, and what was decided on each.
    replies
        Of those that were carried out.
    """
    found = iter(replies)
    for entry, plan in zip(batch, planned, strict=True):
        command, future = entry.command, entry.answer
        if isinstance(plan, RefusalError):
            if future is None and isinstance(command, c.DeviceCommand):
                board.reject(command, plan)
            elif future is not None and not future.done():
                future.set_exception(plan)
            continue
        reply = next(found)
        if future is not None and not future.done():
            future.set_result(reply)


def left_to_others() -> None:
    """Stand for what is carried out with others."""
