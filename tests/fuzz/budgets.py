"""Budgets of callers and tenants against a plain model (`tests/support/budget_model.py`).

An input is a sequence of operations: callers come, ask for operations, streams and calls, are charged for
commands that are queued and carried out, and leave; responses wait to be read; time passes, on a clock of
the input's own.
"""

from __future__ import annotations

import itertools
import math
from contextlib import AbstractAsyncContextManager
from typing import Any
from unittest.mock import patch

from identity.principal import ANYBODY, Principal, Role
from identity.quotas import UNLIMITED, Account, Accounts, Quota
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.runtime import charges
from server.runtime.charges import Charges
from server.runtime.command_queue import Entry
from server.transport import answers
from server.transport.answers import Answers
from tests.fuzz.growth import Choices
from tests.fuzz.target import Target
from tests.support import budget_model as model

_STEPS_MAX = 120
_VERIFIED = 5
"""Steps after which all accounts are compared."""
_INF = math.inf
_QUOTAS = (
    Quota(operations_per_s=2.0, streams_max=2, calls_max=1),
    Quota(operations_per_s=0.05, time_share=0.25),
    Quota(time_share=0.01, streams_max=1, weight=2.0),
    Quota(),
    Quota(operations_per_s=16.0, time_share=2.0, calls_max=3),
)
_TENANT_SHARES = (_INF, 0.5, 0.02, 1.0)
_PACES = (_INF, 0.9, 0.3, 0.02)
_TENANTS = ("", "acme")
_NAMES = ("one", "other")
_PASSED_S = (0.0, 0.001, 0.125, 0.5, 2.0, 7.5, 10.0, 100.0)
_COSTS_US = (0.0, 10.0, 64.0, 2_000.0, 4_096.0, 30_000.0, 1e6, 3e7)
_TOOK = (0.0, 0.5, 1.0, 1.25, 10.0)
_COUNTS = (1, 2, 0, 7, 1_000)
_SIZES = (0, 1, 60_000, 65_536, 70_000, 200_000, 1_000_000, 4_000_000)
_HEAVY_MAX = 2
_BYTES_MAX, _CALLER_BYTES_MAX = 1_200_000, 300_000
_CLOSE = 1e-6

Key = tuple[str, str, Quota]


class _Driver:
    """Accounts, charges and responses, and their models."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.now_s = 1_000.0
        tenant_share = _TENANT_SHARES[choices.below(len(_TENANT_SHARES))]
        self._accounts = Accounts(tenant_share, lambda: self.now_s)
        self._tenant_share = tenant_share
        self._charges = Charges(lambda: self.now_s)
        self._answers = Answers()
        self._tenants: dict[str, model.Account] = {}
        self._models: dict[Key, model.Account] = {}
        self._heavy = model.Heavy(_HEAVY_MAX, charges._HEAVY_US)
        self._held: dict[Key, Account] = {}
        """What callers have that are there."""
        self._waiting: list[tuple[Key, Entry]] = []
        """Commands that are charged, and not carried out."""
        self._rooms: list[tuple[Key, AbstractAsyncContextManager[Any], Any]] = []

    def run(self) -> None:
        """Do what the numbers say."""
        steps = (
            self._pass_time,
            self._take,
            self._require,
            self._queue,
            self._carry_out,
            self._charge,
            self._stream,
            self._call,
            self._respond,
            self._write,
            self._leave,
            self._set_pace,
        )
        for number in range(_STEPS_MAX):
            if self._choices.is_over:
                break
            steps[self._choices.below(len(steps))]()
            self._drop()
            if number % _VERIFIED == 0:
                self._verify()
        self._verify()

    def _caller(self) -> tuple[Key, Account, model.Account]:
        """Return the account of some caller; the same as long as somebody has it."""
        choices = self._choices
        bits, quota = choices.below(4), _QUOTAS[choices.below(len(_QUOTAS))]
        key = _TENANTS[bits % 2], _NAMES[bits // 2], quota
        account = self._accounts.account(*key)
        assert self._held.setdefault(key, account) is account, "a caller has two accounts"
        if key not in self._models:
            tenant = self._tenants.get(key[0])
            if tenant is None:
                tenant = self._tenants[key[0]] = model.Account(_INF, self._tenant_share)
            self._models[key] = model.Account(quota.operations_per_s, quota.time_share, tenant)
        return key, account, self._models[key]

    def _pass_time(self) -> None:
        passed_s = _PASSED_S[self._choices.below(len(_PASSED_S))]
        self.now_s += passed_s
        for one in (*self._models.values(), *self._tenants.values()):
            one.pass_time(passed_s)

    def _take(self) -> None:
        _, account, expected = self._caller()
        count = _COUNTS[self._choices.below(len(_COUNTS))]
        wait_s, due_s = account.take(count), expected.wait_s
        if account.is_limited:
            due_s = max(due_s, expected.pace_wait_s)
        is_near = expected.is_near or (expected.tenant is not None and expected.tenant.pace.is_near)
        if is_near and min(wait_s, due_s) == 0.0:
            assert max(wait_s, due_s) < _CLOSE
        else:
            assert math.isclose(wait_s, due_s, rel_tol=_CLOSE), (wait_s, due_s)
        if not wait_s:
            expected.operations.take(count)

    def _set_pace(self) -> None:
        """Limit a tenant for now, or no longer."""
        if not self._tenants:
            return
        name = list(self._tenants)[self._choices.below(len(self._tenants))]
        share = _PACES[self._choices.below(len(_PACES))]
        self._accounts.tenants[name].set_pace(share)
        self._tenants[name].pace.set_rate(share * model.US_PER_S)

    def _require(self) -> None:
        (_, _, quota), account, expected = self._caller()
        count = _COUNTS[self._choices.below(len(_COUNTS))]
        try:
            account.require(count)
        except RefusedError as error:
            self._verify_refusal(error, quota, expected)
        else:
            assert not expected.refused_field or expected.is_near, "nothing was refused"
            expected.operations.take(count)

    def _verify_refusal(self, error: RefusedError, quota: Quota, expected: model.Account) -> None:
        assert error.reason is Reason.RATE_LIMITED
        if expected.is_near:
            return
        assert error.field == expected.refused_field
        if error.field == "operations":
            wait_s, limit = expected.operations.wait_s, f"at most {quota.operations_per_s:g} a second"
        else:
            wait_s = max(one.wait_s for one in expected.time_buckets)
            is_own = expected.time.wait_s == wait_s
            limit = f"at most {quota.time_share if is_own else self._tenant_share:.1%} of the server's"
        assert abs(error.retry_after_ms - 1_000.0 * wait_s) < 1.0 + _CLOSE * wait_s
        assert error.limit == limit, f"{error.limit}, not {limit}"

    def _charge(self) -> None:
        """Charge what nobody has asked for, or give something back."""
        _, account, expected = self._caller()
        cost_us = _COSTS_US[self._choices.below(len(_COSTS_US))] * (-1, 1, 1, 1)[self._choices.below(4)]
        account.charge(cost_us, self.now_s)
        expected.charge(cost_us, self.now_s)

    def _queue(self) -> None:
        key, account, expected = self._caller()
        cost_us = _COSTS_US[self._choices.below(len(_COSTS_US))]
        principal = Principal(key[1], frozenset(Role), key[0], account=account)
        if self._choices.below(8) == 7:
            principal, cost_us = ANYBODY, 5.0
        entry = Entry(c.Sync(principal), None, 1, principal, cost_us)
        self._charges.taken_on(entry)
        self._waiting.append((key, entry))
        if principal is not ANYBODY:
            expected.charge(cost_us, self.now_s)
            self._heavy.charged(expected, self.now_s)

    def _carry_out(self) -> None:
        """Let a batch take a multiple of what was estimated."""
        count = 1 + self._choices.below(4)
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        ratio = _TOOK[self._choices.below(len(_TOOK))]
        estimated_us = sum(entry.cost_us for _, entry in batch)
        self._charges.carried_out([entry for _, entry in batch], ratio * estimated_us)
        if not estimated_us:
            return
        for key, entry in batch:
            if entry.cost_us and entry.account is not UNLIMITED:
                expected = self._models[key]
                expected.charge((ratio - 1.0) * entry.cost_us, self.now_s)
                self._heavy.charged(expected, self.now_s)

    def _stream(self) -> None:
        (_, _, quota), account, expected = self._caller()
        if self._choices.below(3) == 0 and expected.stream_count:
            account.end_stream()
            expected.stream_count -= 1
            return
        is_refused = _is_refused(account.begin_stream, "streams")
        assert is_refused is (expected.stream_count >= quota.streams_max)
        expected.stream_count += not is_refused

    def _call(self) -> None:
        (_, _, quota), account, expected = self._caller()
        if self._choices.below(3) == 0 and expected.call_count:
            account.end_call()
            expected.call_count -= 1
            return
        is_refused = _is_refused(account.begin_call, "calls")
        assert is_refused is (expected.call_count >= quota.calls_max)
        expected.call_count += not is_refused

    def _respond(self) -> None:
        """Reserve bytes for a response as large as the caller's last one, then say how large it is."""
        key, account, expected = self._caller()
        account.answer_bytes = self._some_size()
        size = max(answers._LEAST_BYTES, account.answer_bytes)
        has_room = self._has_room(key, expected, size)
        assert self._answers._has_room(account, size) is has_room
        if not has_room:
            return
        room = self._answers.room(account)
        reservation = _at_once(room.__aenter__())
        assert reservation.size == size
        found = self._some_size()
        if found > size and not self._has_room(key, expected, found):
            assert _is_refused(lambda: self._answers.settle(reservation, found), "answers")
            _at_once(room.__aexit__(None, None, None))
            return
        self._answers.settle(reservation, found)
        expected.unread_bytes += found
        self._rooms.append((key, room, reservation))

    def _some_size(self) -> int:
        return _SIZES[self._choices.below(len(_SIZES))]

    def _has_room(self, key: Key, expected: model.Account, size: int) -> bool:
        """Return whether a caller may have a response of this size."""
        used = sum(one.unread_bytes for one in self._models.values())
        if not expected.unread_bytes:
            return used + size <= _BYTES_MAX or size <= answers._RESERVE_BYTES
        most = _CALLER_BYTES_MAX * key[2].weight
        return expected.unread_bytes + size <= most and used + size <= _BYTES_MAX

    def _write(self) -> None:
        """Let a response be written: its bytes are free."""
        if not self._rooms:
            return
        key, room, reservation = self._rooms.pop(self._choices.below(len(self._rooms)))
        self._models[key].unread_bytes -= reservation.size
        _at_once(room.__aexit__(None, None, None))

    def _leave(self) -> None:
        """Let a caller go; what it has used is forgotten unless something of it is still there."""
        if not self._held:
            return
        key = list(self._held)[self._choices.below(len(self._held))]
        kept = [other for other, _ in self._waiting] + [other for other, _, _ in self._rooms]
        if key not in kept:
            del self._held[key]

    def _drop(self) -> None:
        """Drop accounts that nobody has, and that are not known for having used much."""
        for key in [key for key in self._models if key not in self._held]:
            if self._models[key] not in self._heavy.accounts:
                del self._models[key]

    def _verify(self) -> None:
        """Compare what is shown to operators."""
        found = {
            (one.tenant.name, one.name, one.quota): one for one in self._accounts.all() if one.tenant
        }
        assert found.keys() == self._models.keys(), "other accounts are there than callers"
        for key, account in found.items():
            self._compare(account, self._models[key])
            assert account.is_limited is (
                min(key[2].operations_per_s, self._models[key].time.rate_per_s) < _INF
                or self._models[key].tenant.time.rate_per_s < _INF
            )
            assert account.weight == key[2].weight
        for name, expected in self._tenants.items():
            self._compare(self._accounts.tenants[name], expected)
        shares = [share for share, _ in self._charges.heaviest(self.now_s, 10)]
        expected_shares = self._heavy.shares(self.now_s)
        assert len(shares) == len(expected_shares)
        pairs = zip(shares, expected_shares, strict=True)
        assert all(math.isclose(one, other, abs_tol=1e-12) for one, other in pairs)
        assert all(one >= other for one, other in itertools.pairwise(shares))

    def _compare(self, account: Account, expected: model.Account) -> None:
        assert math.isclose(account.used_us, expected.used_us, abs_tol=_CLOSE)
        share, expected_share = account.share(self.now_s), expected.share(self.now_s)
        assert math.isclose(share, expected_share, abs_tol=1e-12), (share, expected_share)
        counts = account.stream_count, account.call_count, account.unread_bytes
        assert counts == (expected.stream_count, expected.call_count, expected.unread_bytes)


def _is_refused(begin: Any, field: str) -> bool:
    try:
        begin()
    except RefusedError as error:
        assert (error.reason, error.field) == (Reason.RATE_LIMITED, field)
        return True
    return False


def _at_once(coroutine: Any) -> Any:
    """Return what a coroutine does that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def _make():
    def run(data: bytes) -> None:
        with (
            patch.multiple(charges, _HEAVY_MAX=_HEAVY_MAX),
            patch.multiple(answers, BYTES_MAX=_BYTES_MAX, CALLER_BYTES_MAX=_CALLER_BYTES_MAX),
        ):
            _Driver(Choices(data)).run()

    return run


def _seeds() -> list[bytes]:
    found = []
    for share in range(len(_TENANT_SHARES)):
        steps = [bytes([i % 12, i % 4, (i + share) % 5, i % 7, i % 3, i % 8]) for i in range(40)]
        found.append(bytes([share]) + b"".join(steps))
    found.append(bytes([1]) + bytes([1, 0, 1, 3, 3, 0, 1, 7, 0, 1, 0, 1, 0, 2, 0, 1, 0, 0, 2, 4, 0, 0]))
    return found


BUDGETS = Target(
    "budgets",
    _make,
    _seeds,
    ("identity.quotas", "server.runtime.charges", "server.transport.answers"),
    100_000,
)
