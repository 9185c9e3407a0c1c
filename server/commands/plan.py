"""Plans: commands that were decided on, and how those of a batch are carried out together.

Nothing here can fail: a plan is valid, and what had to be durable is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from server.commands import command as c
from server.core.coordinator import Coordinator
from server.errors import RefusalError
from server.model import LiveObject
from server.runtime.command_queue import Entry
from server.store.mutations import Row


class Touches(NamedTuple):
    """What a plan reads or changes, by kind: no text of users is taken for anything else."""

    keys: frozenset[str] = frozenset()
    """Of publishers."""
    object_ids: frozenset[int] = frozenset()
    device_ids: frozenset[str] = frozenset()
    """Devices whose session or subscriptions it changes."""
    everything: bool = False
    """Whether it must be the last of its batch."""


_NOTHING = Touches()


class Touched:
    """What the plans of a batch touch together. Operations: O(what one plan touches)."""

    __slots__ = ("_device_ids", "_keys", "_object_ids", "everything")

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._object_ids: set[int] = set()
        self._device_ids: set[str] = set()
        self.everything = False

    def add(self, touches: Touches) -> None:
        """Add what another plan touches."""
        self._keys |= touches.keys
        self._object_ids |= touches.object_ids
        self._device_ids |= touches.device_ids
        self.everything |= touches.everything

    def has_device(self, device_id: str) -> bool:
        """Whether a plan of the batch changes a device's session or subscriptions."""
        return device_id in self._device_ids

    def is_disjoint(self, touches: Touches) -> bool:
        """Whether another plan touches nothing of it."""
        return (
            self._keys.isdisjoint(touches.keys)
            and self._object_ids.isdisjoint(touches.object_ids)
            and self._device_ids.isdisjoint(touches.device_ids)
        )


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
    touches: Touches = _NOTHING
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


def carry_out(coordinator: Coordinator, step: Step, replies: list[object]) -> None:
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
        coordinator.publish(
            [item for _, one in step.publications for item in one.fresh],
            [old_id for _, one in step.publications for old_id in one.replaced],
        )
    for place, publication in step.publications:
        replies[place] = publication.ids
    for place, plan in step.others:
        replies[place] = plan.apply()


def apply(coordinator: Coordinator, plans: Sequence[Plan]) -> list[object]:
    """Carry plans out in order; return a reply for each."""
    replies: list[object] = [None] * len(plans)
    for step in steps(plans):
        coordinator.anchor(coordinator.hear(step.reports))
        carry_out(coordinator, step, replies)
    return replies


def answer(
    coordinator: Coordinator,
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
                coordinator.reject(command, plan)
            elif future is not None and not future.done():
                future.set_exception(plan)
            continue
        reply = next(found)
        if future is not None and not future.done():
            future.set_result(reply)


def left_to_others() -> None:
    """Stand for what is carried out with others."""
