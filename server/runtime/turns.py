"""Turns: a queue of many callers, in which a flood of one does not delay the first command of another.

Tenants take turns, and within a tenant its callers: deficit round robin (Shreedhar and Varghese, 1996) by
the estimated cost of commands. A caller that has used its share waits until the others have used theirs,
even if it sends one command at a time: a caller in debt without waiting commands keeps its place until
its debt is paid, or no caller waits. The commands of one caller stay in order. A caller that is alone has
all turns.

Operations: O(1) per command put or taken, except when all are in debt: then O(waiting callers), once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from identity.quotas import Account

QUANTUM_US = 500.0
"""Cost that a caller of weight 1 may use in a turn: a handful of reports."""

_TENANT_QUANTUM_US = 4_000.0
"""Cost that a tenant may use in a turn: some of its callers have their turns in it."""


class Waiting(Protocol):
    """An item that waits."""

    cost_us: float
    account: Account
    tenant: str
    is_taken: bool


_Item = TypeVar("_Item", bound=Waiting)


class _Turn:
    """A participant in turns: the rest of its present credit, and the credit per turn."""

    __slots__ = ("credit_us", "quantum_us")

    credit_us: float
    quantum_us: float


class _Flow(_Turn, Generic[_Item]):
    """The waiting items of one caller; none, if only a debt is left."""

    __slots__ = ("account", "items", "tenant")

    def __init__(self, account: Account, tenant: _Tenant[_Item]) -> None:
        self.quantum_us = self.credit_us = QUANTUM_US * account.weight
        self.account = account
        self.tenant = tenant
        self.items: deque[_Item] = deque()


class _Tenant(_Turn, Generic[_Item]):
    """The waiting callers of a tenant."""

    __slots__ = ("flows", "name")

    def __init__(self, name: str) -> None:
        self.quantum_us = self.credit_us = _TENANT_QUANTUM_US
        self.name = name
        self.flows: deque[_Flow[_Item]] = deque()


_Taker = TypeVar("_Taker", bound=_Turn)


class Turns(Generic[_Item]):
    """A queue of many callers."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Tenant[_Item]] = {}
        self._flows: dict[Account, _Flow[_Item]] = {}
        self._ring: deque[_Tenant[_Item]] = deque()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, item: _Item) -> None:
        """Append an item of a caller."""
        self._count += 1
        flow = self._flows.get(item.account)
        if flow is None:
            flow = self._start_flow(item)
        flow.items.append(item)

    def put_back(self, items: Sequence[_Item]) -> None:
        """Put back the items that were taken last, oldest first, as if they had not been taken.

        The oldest one is the next to be taken, so no item is put back again and again. O(items), and
        once O(waiting callers).
        """
        for item in reversed(items):
            self._count += 1
            item.is_taken = False
            flow = self._flows.get(item.account)
            if flow is None:
                flow = self._start_flow(item)
                flow.tenant.flows.rotate(1)  # to the front
            flow.items.appendleft(item)
            for one in (flow, flow.tenant):
                one.credit_us = min(one.quantum_us, one.credit_us + item.cost_us)
        if items:
            flow = self._flows[items[0].account]
            _bring_forward(flow.tenant.flows, flow)
            _bring_forward(self._ring, flow.tenant)

    def of(self, account: Account) -> Sequence[_Item]:
        """Return the waiting items of one caller, oldest first."""
        flow = self._flows.get(account)
        return () if flow is None else flow.items

    def take(
        self,
        count_max: int,
        cost_max_us: float = math.inf,
        is_ready: Callable[[_Item], bool] | None = None,
    ) -> list[_Item]:
        """Take the next items, in turns.

        Parameters
        ----------
        count_max
            Maximum number of items.
        cost_max_us
            Maximum cost of all items; the last one may exceed it.
        is_ready
            Whether an item may be taken now. If not, the turn of its caller is over in this call.
        """
        taken: list[_Item] = []
        cost_us = 0.0
        aside: list[_Flow[_Item]] = []
        while len(taken) < count_max and cost_us < cost_max_us and (flow := self._first()) is not None:
            item = flow.items[0]
            if is_ready is not None and not is_ready(item):
                aside.append(flow)
                self._leave(flow)
                continue
            flow.items.popleft()
            item.is_taken = True
            self._count -= 1
            cost_us += item.cost_us
            tenant = flow.tenant
            if len(tenant.flows) > 1:  # a caller that is alone gets no debt
                flow.credit_us -= item.cost_us
            if len(self._ring) > 1:
                tenant.credit_us -= item.cost_us
            taken.append(item)
            if not flow.items and flow.credit_us > 0.0:
                self._end(flow)
        for flow in aside:
            self._enter(flow)
        if not self._count:  # no caller with a claim waits
            for ring in (self._ring, self._tenants, self._flows):
                ring.clear()
        return taken

    def _first(self) -> _Flow[_Item] | None:
        """Return the caller with the present turn, None if no caller waits; remove idle callers."""
        while self._ring:
            tenant = _next(self._ring)
            flow = _next(tenant.flows) if tenant.flows else None
            if flow is None:
                self._drop(tenant)
            elif flow.items:
                return flow
            else:
                self._end(flow)
        return None

    def _start_flow(self, item: _Item) -> _Flow[_Item]:
        """Add a caller."""
        tenant = self._tenants.get(item.tenant) or _Tenant(item.tenant)
        flow = self._flows[item.account] = _Flow(item.account, tenant)
        self._enter(flow)
        return flow

    def _enter(self, flow: _Flow[_Item]) -> None:
        tenant = flow.tenant
        if tenant.name not in self._tenants:
            self._tenants[tenant.name] = tenant
            self._ring.append(tenant)
        tenant.flows.append(flow)

    def _leave(self, flow: _Flow[_Item]) -> None:
        """Remove the caller with the present turn from the ring."""
        tenant = flow.tenant
        tenant.flows.popleft()
        if not tenant.flows and tenant.credit_us > 0.0:
            self._drop(tenant)

    def _end(self, flow: _Flow[_Item]) -> None:
        """Remove the caller with the present turn, which has no waiting items."""
        self._leave(flow)
        del self._flows[flow.account]

    def _drop(self, tenant: _Tenant[_Item]) -> None:
        """Remove the tenant with the present turn."""
        self._ring.popleft()
        del self._tenants[tenant.name]


def _bring_forward(ring: deque[_Taker], one: _Taker) -> None:
    if ring[0] is not one:
        ring.remove(one)
        ring.appendleft(one)


def _next(ring: deque[_Taker]) -> _Taker:
    """Return the participant with the present turn, at the front of its ring."""
    first = ring[0]
    if first.credit_us > 0.0 or len(ring) == 1:
        return first
    for _ in range(len(ring)):
        ring[0].credit_us += ring[0].quantum_us
        ring.rotate(-1)
        if ring[0].credit_us > 0.0:
            return ring[0]
    # All are in debt: add as many rounds at once as it takes until one has credit.
    rounds = min(math.floor(-one.credit_us / one.quantum_us) for one in ring) + 1
    for one in ring:
        one.credit_us += rounds * one.quantum_us
    while ring[0].credit_us <= 0.0:  # earlier ones have one round more
        ring[0].credit_us += ring[0].quantum_us
        ring.rotate(-1)
    return ring[0]
