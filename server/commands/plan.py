"""Plans: durable commands that were decided on, and which of them may share a batch.

A plan is valid; once its mutations are on disk it cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from server.core.evaluation_batch import EvaluationBatch
from server.model import LiveObject
from server.store.mutations import Mutation


class Touches(NamedTuple):
    """What a plan reads or changes, by kind: no text of users is taken for anything else."""

    keys: frozenset[str] = frozenset()
    """Of publishers."""
    object_ids: frozenset[int] = frozenset()
    device_ids: frozenset[str] = frozenset()
    """Devices whose session or subscriptions it changes."""
    started: frozenset[tuple[str, int | str]] = frozenset()
    """Subscriptions that it begins and that are not there yet: device, and number or name."""
    everything: bool = False
    """Whether it must be the last of its batch."""
    new_window: bool = False
    """Whether it brings a window that no subscription has had."""


_NOTHING = Touches()


class Touched:
    """What the plans of a batch touch together. Operations: O(what one plan touches).

    A device may begin several subscriptions in one batch: that touches nothing else of it.
    """

    __slots__ = (
        "_beginning_ids",
        "_device_ids",
        "_keys",
        "_new_window",
        "_object_ids",
        "_started",
        "everything",
    )

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._object_ids: set[int] = set()
        self._device_ids: set[str] = set()
        self._started: set[tuple[str, int | str]] = set()
        self._beginning_ids: set[str] = set()
        self._new_window = False
        self.everything = False

    def add(self, touches: Touches) -> None:
        """Add what another plan touches."""
        self._keys |= touches.keys
        self._object_ids |= touches.object_ids
        self._device_ids |= touches.device_ids
        self._started |= touches.started
        self._beginning_ids.update(device_id for device_id, _ in touches.started)
        self._new_window |= touches.new_window
        self.everything |= touches.everything

    def add_device(self, device_id: str) -> None:
        """Add a device, whatever one of its commands does."""
        self._device_ids.add(device_id)

    def is_disjoint(self, touches: Touches) -> bool:
        """Whether another plan touches nothing of it."""
        return (
            self._keys.isdisjoint(touches.keys)
            and self._object_ids.isdisjoint(touches.object_ids)
            and self._device_ids.isdisjoint(touches.device_ids)
            and self._beginning_ids.isdisjoint(touches.device_ids)
            and self._started.isdisjoint(touches.started)
            and self._device_ids.isdisjoint(device_id for device_id, _ in touches.started)
            and not (self._new_window and touches.new_window)
        )


class Publication(NamedTuple):
    """What a publish command comes to; those of a batch are carried out together."""

    created: Sequence[LiveObject]
    replaced: Sequence[int]
    """For each of them, the id of the object in whose place it comes; 0 for none."""
    ids: list[int]
    """Of all that were asked for: the reply."""


def slices(
    publications: Iterable[Publication], count_max: int
) -> Iterator[tuple[list[LiveObject], list[int]]]:
    """Yield the objects of publications, in order, so many at a time, and the ids of those replaced."""
    created: list[LiveObject] = []
    replaced: list[int] = []
    for publication in publications:
        for item, old_id in zip(publication.created, publication.replaced, strict=True):
            created.append(item)
            if old_id:
                replaced.append(old_id)
            if len(created) >= count_max:
                yield created, replaced
                created, replaced = [], []
    if created:
        yield created, replaced


class Later:
    """Stands for a command that has to wait for another one of its batch: it comes in the next."""


LATER = Later()


@dataclass(slots=True)
class Plan:
    """A validated command: what must be durable, what it touches, and how to carry it out."""

    apply: Callable[[EvaluationBatch], object]
    """Changes what there is, and puts what is to be evaluated into the batch; gives the reply."""
    mutations: tuple[Mutation, ...] = ()
    touches: Touches = _NOTHING
    publication: Publication | None = None
    """What it publishes, if it does: carried out after `apply`, with all of the batch."""
