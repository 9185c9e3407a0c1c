"""The fair queue as plain models: lists of what waits, looked through from end to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

VOLATILE, DURABLE = "volatile", "durable"


@dataclass(eq=False)
class Waiting:
    """A command that waits."""

    number: int
    caller: Hashable
    cost_us: float
    item: Any
    """What the queue has of it."""
    command: Any = None
    device_ids: tuple[str, ...] = ()
    """Devices whose later commands wait for this one."""
    is_barrier: bool = False
    lane: str = DURABLE
    is_replaceable: bool = False
    """Whether it is a report that no batch has had yet."""


@dataclass
class Lane:
    """What waits of each caller, oldest first."""

    waiting: dict[Hashable, list[Waiting]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.waiting.values()))

    def of(self, caller: Hashable) -> list[Waiting]:
        return self.waiting.setdefault(caller, [])

    def all(self) -> list[Waiting]:
        return [one for waiting in self.waiting.values() for one in waiting]

    def put(self, one: Waiting) -> None:
        self.of(one.caller).append(one)

    def put_back(self, returned: Sequence[Waiting]) -> None:
        for caller in {one.caller for one in returned}:
            self.of(caller)[:0] = [one for one in returned if one.caller == caller]

    def take(
        self,
        items: Sequence[Any],
        count_max: int,
        cost_max_us: float = math.inf,
        is_ready: Callable[[Waiting], bool] = lambda _: True,
    ) -> list[Waiting]:
        """Follow what was taken, and verify it.

        A caller whose first is not ready is passed over for this time, so at the end each caller has
        nothing, or its first was not ready when it became the first, or a bound has been reached.
        """
        passed = {caller: not is_ready(one[0]) for caller, one in self.waiting.items() if one}
        taken: list[Waiting] = []
        assert len(items) <= count_max, "more was taken than requested"
        for item in items:
            assert sum(one.cost_us for one in taken) < cost_max_us, "the cost was reached before"
            found = [one[0] for one in self.waiting.values() if one and one[0].item is item]
            assert found, "what was taken is no caller's first"
            (first,) = found
            assert is_ready(first), "what was taken was not ready"
            waiting = self.of(first.caller)
            waiting.pop(0)
            taken.append(first)
            passed[first.caller] = bool(waiting) and not is_ready(waiting[0])
        if len(taken) < count_max and sum(one.cost_us for one in taken) < cost_max_us:
            rest = [caller for caller, one in self.waiting.items() if one and not passed[caller]]
            assert not rest, f"callers {rest} were skipped"
        return taken


class Queue:
    """The queue of two lanes.

    Parameters
    ----------
    count_max, caller_max, reserve
        How many commands wait of all callers; of one that is limited; of such a one whatever others have.
    gives_way
        Whether a report gives way to a later one of its device.
    """

    def __init__(
        self, count_max: int, caller_max: int, reserve: int, gives_way: Callable[[Any, Any], bool]
    ) -> None:
        self._count_max = count_max
        self._caller_max = caller_max
        self._reserve = reserve
        self._gives_way = gives_way
        self.volatile, self.durable = Lane(), Lane()
        self.under_way: list[Waiting] = []
        self._latest: dict[str, Waiting] = {}
        """Of each device, the last command that it, or somebody about it alone, has asked for."""
        self.superseded_count = 0

    def __len__(self) -> int:
        return len(self.volatile) + len(self.durable)

    def replaced(self, device_id: str, report: Any) -> bool:
        """Whether a report takes the place of the last command of its device; if so, it does."""
        latest = self._latest.get(device_id)
        if latest is None or not latest.is_replaceable or not self._gives_way(latest.command, report):
            return False
        latest.command = report
        self.superseded_count += 1
        return True

    def put(self, one: Waiting, device_id: str, *, is_volatile: bool, is_latest: bool) -> None:
        """Append a command. Behind a durable one of its device a volatile one is durable, too."""
        held = [name for other in (*self.durable.all(), *self.under_way) for name in other.device_ids]
        one.lane = VOLATILE if is_volatile and device_id not in held else DURABLE
        if is_latest:
            self._latest[device_id] = one
        (self.volatile if one.lane == VOLATILE else self.durable).put(one)

    def has_room(self, caller: Hashable, *, is_limited: bool) -> bool:
        count = len(self.volatile.of(caller)) + len(self.durable.of(caller))
        if len(self) >= self._count_max:
            return is_limited and count < self._reserve
        return count < self._caller_max or not is_limited

    def is_next(self, one: Waiting) -> bool:
        """Whether nothing is ahead of a durable command: none of its caller, of a barrier none at all."""
        ahead = self.volatile.of(one.caller)
        if one.is_barrier:
            ahead = [*self.volatile.all(), *self.durable.all()]
        return all(other.number >= one.number for other in ahead)

    def take_volatile(self, items: Sequence[Any], *bounds: Any) -> list[Waiting]:
        return self._taken(self.volatile.take(items, *bounds))

    def take_durable(self, items: Sequence[Any], count_max: int, cost_max_us: float) -> list[Waiting]:
        taken = self._taken(self.durable.take(items, count_max, cost_max_us, self.is_next))
        self.under_way += taken
        return taken

    def take_all(self, items: Iterable[Any]) -> None:
        """Take all that waits, each caller's in order."""
        found = [one for one in items if any(one is other.item for other in self.volatile.all())]
        rest = [one for one in items if one not in found]
        self._taken(self.volatile.take(found, len(self.volatile)))
        self._taken(self.durable.take(rest, len(self.durable)))
        assert not len(self), "something still waits"

    def put_back(self, returned: Sequence[Waiting]) -> None:
        self.durable.put_back(returned)
        self.under_way = [one for one in self.under_way if one not in returned]

    def done(self, finished: Sequence[Waiting]) -> None:
        self.under_way = [one for one in self.under_way if one not in finished]

    def _taken(self, taken: list[Waiting]) -> list[Waiting]:
        for one in taken:
            one.is_replaceable = False
        return taken


class Shares:
    """How much of what was taken each caller has had, of those that wait all the time.

    Two callers of a tenant, or two tenants, whose shares differ by more than a turn and one command have
    not had them by weight.

    Parameters
    ----------
    weights
        Of each caller or tenant.
    quantum_us
        What one of weight 1 has in a turn.
    """

    def __init__(self, weights: dict[Hashable, float], quantum_us: float) -> None:
        self._weights = weights
        self._quantum_us = quantum_us
        self._had_us = dict.fromkeys(weights, 0.0)
        self._largest_us = dict.fromkeys(weights, 0.0)

    def record(self, name: Hashable, cost_us: float) -> None:
        """Record that a command was taken, and verify the share of who asked for it."""
        self._had_us[name] += cost_us
        self._largest_us[name] = max(self._largest_us[name], cost_us)
        share_us = self._had_us[name] / self._weights[name]
        least_us = min(had / self._weights[other] for other, had in self._had_us.items())
        most_us = self._quantum_us + self._largest_us[name] / self._weights[name]
        message = f"{name} has had {share_us - least_us:g} us more than another, not {most_us:g}"
        assert share_us - least_us <= most_us + 1e-6, message
