"""Plans: decided durable commands, and which of them may share a batch.

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
    """The data that a plan reads or changes; separate by kind, so that equal texts do not collide."""

    owner: str = ""
    """The publisher whose keys these are."""
    keys: frozenset[str] = frozenset()
    object_ids: frozenset[int] = frozenset()
    device_ids: frozenset[str] = frozenset()
    """Devices whose session or subscriptions the plan changes."""
    started: frozenset[tuple[str, int | str]] = frozenset()
    """New subscriptions that the plan starts: device, and number or name."""
    everything: bool = False
    """Whether the plan must be the last of its batch."""
    new_window: bool = False
    """Whether the plan adds a window that no subscription has had."""


_NOTHING = Touches()


class Touched:
    """The data that the plans of a batch touch together. Operations: O(data that one plan touches).

    A device may start several subscriptions in one batch: these touch nothing else of it.
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
        self._keys: dict[str, set[str]] = {}
        """By owner."""
        self._object_ids: set[int] = set()
        self._device_ids: set[str] = set()
        self._started: set[tuple[str, int | str]] = set()
        self._beginning_ids: set[str] = set()
        self._new_window = False
        self.everything = False

    def add(self, touches: Touches) -> None:
        """Add the data that another plan touches."""
        if touches.keys:
            self._keys.setdefault(touches.owner, set()).update(touches.keys)
        self._object_ids |= touches.object_ids
        self._device_ids |= touches.device_ids
        self._started |= touches.started
        self._beginning_ids.update(device_id for device_id, _ in touches.started)
        self._new_window |= touches.new_window
        self.everything |= touches.everything

    def add_device(self, device_id: str) -> None:
        """Add a device, regardless of the effect of its command."""
        self._device_ids.add(device_id)

    def is_disjoint(self, touches: Touches) -> bool:
        """Return whether another plan touches none of this data."""
        return (
            touches.keys.isdisjoint(self._keys.get(touches.owner, ()))
            and self._object_ids.isdisjoint(touches.object_ids)
            and self._device_ids.isdisjoint(touches.device_ids)
            and self._beginning_ids.isdisjoint(touches.device_ids)
            and self._started.isdisjoint(touches.started)
            and self._device_ids.isdisjoint(device_id for device_id, _ in touches.started)
            and not (self._new_window and touches.new_window)
        )


class Publication(NamedTuple):
    """The result of planning a publish command; the publications of a batch are applied together."""

    created: Sequence[LiveObject]
    replaced: Sequence[int]
    """For each created object, the id of the object that it replaces; 0 for none."""
    ids: list[int]
    """The ids of all requested objects: the reply."""


def slices(
    publications: Iterable[Publication], count_max: int
) -> Iterator[tuple[list[LiveObject], list[int]]]:
    """Yield the objects of publications in order, at most `count_max` at a time, and the replaced ids."""
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
    """The decision on a command that has to wait for another one of its batch: it is in the next."""


LATER = Later()


@dataclass(slots=True)
class Plan:
    """A validated command: its mutations, the data that it touches, and how to apply it."""

    apply: Callable[[EvaluationBatch], object]
    """Changes the state, adds rows to the batch, and returns the reply."""
    mutations: tuple[Mutation, ...] = ()
    touches: Touches = _NOTHING
    publication: Publication | None = None
    """The publication, if any: applied after `apply`, with those of the whole batch."""
