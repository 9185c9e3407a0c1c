"""The fair queue and the turns of its callers, against plain models (`tests/support/queue_model.py`).

An input is a sequence of operations, each with the numbers that it needs. Of turns there are two kinds of
inputs: in one callers come and go, in the other they wait all the time and must have their shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

from identity.principal import Principal, Role
from identity.quotas import Account, Quota
from safe_region.scoring.idf import IdfTable
from server import command as c
from server.counters import Counters
from server.model import Place, TopK
from server.runtime import command_queue, turns
from server.runtime.command_queue import CommandQueue, Entry
from server.session import Outbox
from tests.fuzz.growth import Choices
from tests.fuzz.target import Target
from tests.support.queue_model import Lane, Queue, Shares, Waiting

_STEPS_MAX = 120
_COSTS_US = (1.0, 40.0, 500.0, 60.0, 0.0, 700.0, 5_000.0, 20_000.0)
_BOUNDS_US = (float("inf"), 1.0, 800.0, 6_000.0, 50_000.0)
_COUNTS = (1, 2, 3, 9, 100)
_CALLERS = (("acme", 1.0), ("acme", 2.0), ("acme", 1.0), ("beta", 8.0), ("", 1.0), ("", 1.0))
"""Tenants and weights."""
_DEVICES = "abc"
_BARRIERS = (c.Sync, c.AdvanceClock, c.SetIdf)
_VOLATILE = (c.Hello, c.Detach, c.Report, c.Ack, c.Ping, c.Search, c.Inspect)

_HERE = Place(14.5, 35.5)
_IDF = IdfTable({})
_SPEC = TopK(("sushi",), 3, 0.5)
_COMMANDS: tuple[Callable[[Principal, Outbox, str], c.Command], ...] = (
    lambda principal, _outbox, _device_id: c.Publish((), principal),
    lambda principal, _outbox, _device_id: c.Sync(principal),
    lambda principal, _outbox, _device_id: c.AdvanceClock(1, principal),
    lambda principal, _outbox, _device_id: c.SetIdf(_IDF, principal),
    lambda _, outbox, device_id: c.Subscribe(outbox, device_id, 1, _SPEC, _HERE),
    lambda _, outbox, device_id: c.Unsubscribe(outbox, device_id, 1),
    lambda _, _outbox, device_id: c.Forget(tuple(_DEVICES[: 1 + _DEVICES.index(device_id)])),
    lambda principal, _, device_id: c.ForgetDevice(device_id, principal),
    lambda principal, _outbox, _device_id: c.Search(_SPEC, 14.5, 35.5, principal),
    lambda principal, _, device_id: c.Inspect(principal, device_id),
    lambda _, outbox, device_id: c.Hello(outbox, device_id, b"n", 0, _HERE),
    lambda _, outbox, device_id: c.Detach(outbox, device_id),
    lambda _, outbox, device_id: c.Ping(outbox, device_id, 1),
    lambda _, outbox, device_id: c.Ack(outbox, device_id, 1),
)
"""All kinds but reports."""

_COUNT_MAX, _CALLER_MAX, _RESERVE = 14, 7, 2
"""Bounds of the queue, small enough to be reached."""


@dataclass(eq=False)
class _Item:
    """What takes turns."""

    account: Account
    tenant: str
    cost_us: float
    is_taken: bool = False


def _accounts() -> list[Account]:
    return [Account(Quota(weight=weight), name=str(i)) for i, (_, weight) in enumerate(_CALLERS)]


class _TurnsDriver:
    """Turns and their model."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._turns: turns.Turns[_Item] = turns.Turns()
        self._model = Lane()
        self._accounts = _accounts()
        self._number = 0
        self._last: list[Waiting] = []
        """What was taken last, and may be put back."""

    def put(self, caller: int) -> None:
        self._number += 1
        cost_us = _COSTS_US[self._choices.below(len(_COSTS_US))]
        item = _Item(self._accounts[caller], _CALLERS[caller][0], cost_us)
        self._turns.put(item)
        self._model.put(Waiting(self._number, caller, cost_us, item))

    def take(self, count_max: int, cost_max_us: float, barred: frozenset[int] = frozenset()) -> None:
        accounts = {self._accounts[caller] for caller in barred}
        is_ready = (lambda item: item.account not in accounts) if barred else None
        items = self._turns.take(count_max, cost_max_us, is_ready)
        assert all(item.is_taken for item in items)
        self._last = self._model.take(items, count_max, cost_max_us, lambda one: one.caller not in barred)

    def put_back(self, count: int) -> None:
        returned = self._last[len(self._last) - count :]
        self._turns.put_back([one.item for one in returned])
        self._model.put_back(returned)
        self._last = []

    def take_again(self) -> None:
        """Take one, put it back: it is taken next."""
        self.take(1, _BOUNDS_US[0])
        if not self._last:
            return
        (one,) = self._last
        self.put_back(1)
        self.take(1, _BOUNDS_US[0])
        assert self._last == [one], "what was put back has lost its turn"

    def mixed(self) -> None:
        """Let callers come and go."""
        choices = self._choices
        for _ in range(_STEPS_MAX):
            if choices.is_over:
                break
            step = choices.below(8)
            if step < 4:
                self.put(choices.below(len(_CALLERS)))
            elif step < 6:
                bits = choices.below(64)
                barred = frozenset(i for i in range(len(_CALLERS)) if step == 5 and bits >> i & 1)
                self.take(_COUNTS[choices.below(5)], _BOUNDS_US[choices.below(5)], barred)
            elif step == 6:
                self.put_back(choices.below(len(self._last) + 1))
            else:
                self.take_again()
            self.verify()
        self.take(len(self._model), _BOUNDS_US[0])
        assert not len(self._turns)

    def verify(self) -> None:
        """Compare what waits."""
        assert len(self._turns) == len(self._model)
        for caller, account in enumerate(self._accounts):
            waiting = [one.item for one in self._model.of(caller)]
            assert list(self._turns.of(account)) == waiting
            assert not any(item.is_taken for item in waiting)

    def steady(self) -> None:
        """Let some callers wait all the time, and others come and go; verify the shares of the first."""
        choices = self._choices
        bits = choices.below(63) + 1
        steady = [i for i in range(len(_CALLERS)) if bits >> i & 1]
        tenants = {name: [i for i in steady if _CALLERS[i][0] == name] for name, _ in _CALLERS}
        weights = {name: {i: _CALLERS[i][1] for i in found} for name, found in tenants.items() if found}
        shares = {name: Shares(found, turns.QUANTUM_US) for name, found in weights.items()}
        of_tenants = Shares(dict.fromkeys(weights, 1.0), turns._TENANT_QUANTUM_US)
        for _ in range(_STEPS_MAX):
            for caller in steady:
                while len(self._model.of(caller)) < 3:
                    self.put(caller)
            if choices.is_over:
                break
            step = choices.below(8)
            if step == 0:
                self.put(choices.below(len(_CALLERS)))
            elif step == 1:
                self.take_again()
            else:
                self.take(1 + choices.below(2), _BOUNDS_US[0])
            for one in self._last if step else ():
                tenant = _CALLERS[one.caller][0]
                if one.caller in steady:
                    shares[tenant].record(one.caller, one.cost_us)
                if tenant in weights:
                    of_tenants.record(tenant, one.cost_us)


def _make_turns():
    def run(data: bytes) -> None:
        driver = _TurnsDriver(Choices(data[1:]))
        if data[:1] < b"\x80":
            driver.mixed()
        else:
            driver.steady()

    return run


def _gives_way(before: c.Report, report: c.Report) -> bool:
    """Whether a report says all that the one before has said, and comes later on the same stream."""
    return (
        before.outbox is report.outbox
        and report.sequence > before.sequence
        and (before.subscription_ids, before.place.margin_m)
        == (report.subscription_ids, report.place.margin_m)
    )


class _QueueDriver:
    """A queue of commands and its model."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._principals = [
            Principal(
                str(i),
                frozenset(Role),
                tenant,
                account=Account(Quota(operations_per_s=1e9 if i % 3 else float("inf"), weight=weight)),
            )
            for i, (tenant, weight) in enumerate(_CALLERS)
        ]
        self._outboxes = [[Outbox(principal=one) for _ in range(2)] for one in self._principals]
        self._counters = Counters()
        self._entries: list[Entry] = []
        self._cost_us = 0.0
        self._queue = CommandQueue(
            self._counters, _COUNT_MAX, lambda _: self._cost_us, self._entries.append
        )
        self._model = Queue(_COUNT_MAX, _CALLER_MAX, _RESERVE, _gives_way)
        self._sequence = 0
        self._last: list[Waiting] = []

    def run(self) -> None:
        """Do what the numbers say, and take all that waits in the end."""
        choices = self._choices
        for _ in range(_STEPS_MAX):
            if choices.is_over:
                break
            step = choices.below(12)
            if step < 6:
                self._put(choices.below(len(_CALLERS)))
            elif step == 6:
                bits = choices.below(64) if choices.below(2) else 0
                self._take_volatile(frozenset(i for i in range(6) if bits >> i & 1))
            elif step in {7, 8}:
                self._take_durable()
            elif step == 9:
                self._put_back()
            elif step == 10:
                self._done(choices.below(4))
            elif choices.below(8) == 0:
                self._model.take_all(self._queue.take_all())
                self._last = []
            self._verify()
        self._drain()

    def _put(self, caller: int) -> None:
        choices = self._choices
        self._cost_us = _COSTS_US[choices.below(len(_COSTS_US))]
        device_id = _DEVICES[choices.below(len(_DEVICES))]
        command = self._command(choices.below(24), caller, device_id)
        is_latest = isinstance(command, c.DeviceCommand | c.ForgetDevice)
        is_replaced = isinstance(command, c.Report) and self._model.replaced(device_id, command)
        assert self._queue.put(command) is not is_replaced
        if is_replaced:
            return
        entry = self._entries[-1]
        assert entry.command is command
        assert entry.cost_us == self._cost_us
        device_ids = command.device_ids if isinstance(command, c.Forget) else ()
        one = Waiting(
            len(self._entries),
            "anybody" if isinstance(command, c.Forget) else caller,
            self._cost_us,
            entry,
            command,
            (device_id,) if is_latest else device_ids,
            isinstance(command, _BARRIERS),
            is_replaceable=isinstance(command, c.Report),
        )
        is_volatile = isinstance(command, _VOLATILE)
        name = "" if isinstance(command, c.Search | c.Inspect) else device_id
        self._model.put(one, name, is_volatile=is_volatile, is_latest=is_latest)

    def _command(self, kind: int, caller: int, device_id: str) -> c.Command:
        """Return a command of some kind; many of them are reports."""
        principal, outbox = self._principals[caller], self._outboxes[caller][0]
        self._sequence += 1
        if kind < len(_COMMANDS):
            return _COMMANDS[kind](principal, outbox, device_id)
        kind -= len(_COMMANDS)
        place = Place(14.5, 35.5, margin_m=5.0 if kind == 1 else 0.0)
        sequence = self._sequence - (2 if kind == 2 else 0)
        outbox = self._outboxes[caller][kind == 3]
        return c.Report(outbox, device_id, None, sequence, place, (1, 2) if kind == 0 else (1,))

    def _take_volatile(self, barred: frozenset[int]) -> None:
        count, cost_us = self._bounds()
        accounts = {self._principals[caller].account for caller in barred}
        is_ready = (lambda entry: entry.account not in accounts) if barred else None
        entries = self._queue.take_volatile(count, cost_us, is_ready)
        taken = self._model.take_volatile(entries, count, cost_us, lambda one: one.caller not in barred)
        self._verify_commands(taken)

    def _take_durable(self) -> None:
        count, cost_us = self._bounds()
        entries = self._queue.take_durable(count, cost_us)
        self._last = self._model.take_durable(entries, count, cost_us)
        self._verify_commands(self._last)

    def _bounds(self) -> tuple[int, float]:
        return _COUNTS[self._choices.below(5)], _BOUNDS_US[self._choices.below(5)]

    @staticmethod
    def _verify_commands(taken: list[Waiting]) -> None:
        """Compare commands: a report may have come in the place of another."""
        assert all(one.item.command is one.command for one in taken)
        assert all(one.item.is_taken for one in taken)

    def _put_back(self) -> None:
        """Put some back of what was taken last: as a batch does with what cannot be carried out yet."""
        bits = self._choices.below(256)
        returned = [one for i, one in enumerate(self._last) if bits >> (i % 8) & 1]
        returned = [one for one in returned if one in self._model.under_way]
        self._queue.put_back([one.item for one in returned])
        self._model.put_back(returned)
        self._last = []

    def _done(self, count: int) -> None:
        finished = self._model.under_way[: count or None]
        self._queue.done([one.item for one in finished])
        self._model.done(finished)

    def _verify(self) -> None:
        """Compare how much waits, and who may put more."""
        queue, model = self._queue, self._model
        assert len(queue) == len(model)
        assert queue.volatile_count == len(model.volatile)
        assert queue.durable_count == len(model.durable)
        assert self._counters.reports_superseded == model.superseded_count
        for caller, principal in enumerate(self._principals):
            account = principal.account
            has_room = model.has_room(caller, is_limited=account.is_limited)
            assert queue.has_room(account) is has_room

    def _drain(self) -> None:
        """Take all, batch by batch: nothing waits for ever, and nothing is kept of what was done."""
        for _ in range(2 * len(self._model) + 2):
            self._done(0)
            for entries, take in (
                (self._queue.take_volatile(1), self._model.take_volatile),
                (self._queue.take_durable(1), self._model.take_durable),
            ):
                self._verify_commands(take(entries, 1, float("inf")))
        self._done(0)
        assert not len(self._queue), "something waits for ever"
        kept = (self._queue._busy, self._queue._reports, self._queue._order, self._queue._returned)
        assert not any(map(len, kept)), "something is kept of what is gone"


def _make_queue():
    def run(data: bytes) -> None:
        with patch.multiple(command_queue, CALLER_MAX=_CALLER_MAX, _RESERVE=_RESERVE):
            _QueueDriver(Choices(data)).run()

    return run


def _turn_seeds() -> list[bytes]:
    puts = bytes(number for i in range(12) for number in (i % 4, i % 6, i % 8))
    takes = bytes([4, 0, 3, 2, 5, 5, 2, 0, 6, 2, 7])
    steady = bytes(number for i in range(60) for number in (2 + i % 6, i % 2, i % 8, i % 5))
    return [b"\0" + puts + takes, *(bytes([255, bits]) + steady for bits in (3, 7, 15, 63))]


def _queue_seeds() -> list[bytes]:
    puts = [bytes([0, i % 6, i % 8, i % 3, i % 24]) for i in range(40)]
    rest = bytes([6, 0, 2, 0, 7, 3, 0, 9, 5, 10, 1, 11, 0, 8, 4, 1])
    return [b"".join(puts[at : at + 12]) + rest + b"".join(puts[:6]) + rest for at in (0, 7, 14, 21, 28)]


TURNS = Target("turns", _make_turns, _turn_seeds, ("server.runtime.turns",), 100_000)
QUEUE = Target(
    "queue", _make_queue, _queue_seeds, ("server.runtime.command_queue", "server.runtime.turns"), 100_000
)
