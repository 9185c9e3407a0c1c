"""How long a fault keeps devices from their results, and what they call exact meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import NamedTuple, Self

from nearcast import Spec, SubscriptionState
from tests.chaos.cluster.ledger import Ledger
from tests.chaos.crowd import Crowd, Group, Member

_LOOK_S = 0.02
_SAMPLE_EVERY = 5
"""One list is kept in so many looks."""
_OUTDATED_S = 40.0
"""A device by itself notices that its node is gone: 20 s of keepalive, 10 s for a response, reserve."""
_BY_ITSELF = (
    SubscriptionState.CATCHING_UP,
    SubscriptionState.STALE,
    SubscriptionState.TOO_VAGUE,
    SubscriptionState.TOO_MANY,
    SubscriptionState.EXACT,
)
"""States that devices pass through without a fault."""


class Sample(NamedTuple):
    """A list that a device called exact, and how far the log was read."""

    name: str
    spec: Spec
    lon: float
    lat: float
    shown: list[int]
    now_ms: int
    oldest: int
    """The number of entries that had been read as long before as a device may be out of date."""
    entry: int


class Recovery:
    """Looks at all devices from the moment of a fault.

    Parameters
    ----------
    crowd
        The devices.
    ledger
        What the log says.
    """

    def __init__(self, crowd: Crowd, ledger: Ledger) -> None:
        self._crowd = crowd
        self._ledger = ledger
        self._struck_s = time.monotonic()
        self._looks = 0
        self._hit: set[str] = set()
        self.samples: list[Sample] = []
        self.exact_s: dict[str, float] = {}
        """By device without a server for a while: seconds from the fault until it was exact again."""

    def strike(self) -> None:
        """Count from now: the fault begins."""
        self._struck_s = time.monotonic()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self._looks += 1
            for group in self._crowd.awake:
                for member in group.members:
                    self._look(member)
            if self._looks % _SAMPLE_EVERY == 0:
                self._keep(self._crowd.chance.choice(self._crowd.awake))

    def _look(self, member: Member) -> None:
        states = {one.state for one in member.device.subscriptions}
        name = member.device.id
        if any(state not in _BY_ITSELF for state in states):
            self._hit.add(name)
        elif name in self._hit and states <= {SubscriptionState.EXACT}:
            self._hit.remove(name)
            self.exact_s[name] = time.monotonic() - self._struck_s

    def _keep(self, group: Group) -> None:
        member = self._crowd.chance.choice(group.members)
        now_ms = group.client.clock.now_ms()
        for one in member.device.subscriptions:
            spec = member.specs.get(one.id)
            if spec is None or member.is_deleted or one.state is not SubscriptionState.EXACT:
                continue
            shown = [match.object.id for match in one.results()]
            if group.client.clock.now_ms() == now_ms:
                name = f"{member.device.id}/{one.id}"
                place = (member.lon, member.lat)
                read = (self._ledger.entries_before(_OUTDATED_S), self._ledger.entry_count)
                self.samples.append(Sample(name, spec, *place, shown, now_ms, *read))
