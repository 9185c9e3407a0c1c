"""Readings: the present state, counters and measurements, for `Status` and for metrics.

Everything is read on the event loop, where it changes, on request; nothing is kept up to date in between.
A reading costs a millisecond per thousand streams, and no more than a millisecond or two for sessions,
however many there are: of more than `_SESSIONS_MAX` every n-th is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from engine.contracts import BOOLEAN, STATIONARY, TOP_K
from identity.principal import DEFAULT_TENANT
from identity.quotas import Account
from safe_region.jit.dispatchers import Kernel
from server.core.placement import GAUGES
from server.counters import Feed
from server.distribution import Classes, Distribution
from server.runtime.command_loop import CommandLoop
from server.runtime.lifecycle import ServerState

KINDS = {TOP_K: "TOP_K", BOOLEAN: "BOOLEAN", STATIONARY: "STATIONARY"}
"""Kinds of subscriptions, as the engine separates them."""

_SESSIONS_MAX = 10_000
_CALLERS_MAX = 10
_HEAVY_MAX = 64


class Usage(NamedTuple):
    """The recent use of a caller."""

    share: float
    """Share of the event loop's time."""
    account: Account


def _tenant_of(account: Account) -> str:
    return "" if account.tenant is None else account.tenant.name


class Reading(NamedTuple):
    """The state at one moment."""

    state: ServerState
    time_ms: int
    """Server time; 0 while the server recovers, since it is not known yet."""
    gauges: dict[str, int]
    counters: dict[str, int]
    measures: dict[str, Classes]


class Readings:
    """Reads the state of a server.

    Parameters
    ----------
    command_loop
        The command loop of the server.
    store
        The database file.
    accounts
        Returns the accounts of callers.
    """

    def __init__(
        self, command_loop: CommandLoop, store: Path, accounts: Callable[[], list[Account]]
    ) -> None:
        self._command_loop = command_loop
        self._coordinator = command_loop.coordinator
        self._files = (store, store.with_name(f"{store.name}-wal"))
        self.accounts = accounts

    def read(self, tenant: str = DEFAULT_TENANT) -> Reading:
        """Return a reading, in any state of the server.

        Parameters
        ----------
        tenant
            Whose operator reads. Another one than the default one gets its own gauges only, in O(1).
        """
        coordinator, state = self._coordinator, self._command_loop.state
        time_ms = 0 if state is ServerState.RECOVERING else coordinator.matching.now_ms
        if tenant != DEFAULT_TENANT:
            return Reading(state, time_ms, coordinator.gauges_of(tenant), {}, {})
        counters = coordinator.counters
        measures = counters.measures.named() | {"silence_ms": self._silence()}
        return Reading(state, time_ms, self._gauges(), counters.named(), measures)

    def most(self, tenant: str) -> list[Usage]:
        """Return the callers that have used most of the event loop's time lately, largest first.

        Parameters
        ----------
        tenant
            The tenant of the callers; the default one includes all tenants.
        """
        of_all = tenant == DEFAULT_TENANT
        found = self._command_loop.charges.heaviest(time.monotonic(), _HEAVY_MAX)
        mine = [one for one in found if of_all or _tenant_of(one[1]) == tenant]
        return [Usage(*one) for one in mine[:_CALLERS_MAX]]

    def _gauges(self) -> dict[str, int]:
        coordinator, loop = self._coordinator, self._command_loop
        outboxes = coordinator.outboxes
        engine = coordinator.matching.engine
        matchers = {name: engine.matchers[kind] for kind, name in KINDS.items()}
        return {
            **{f"devices.{one.name}": count for one, count in coordinator.router.devices().items()},
            "subscriptions": coordinator.router.subscription_count,
            **{f"subscriptions_by_kind.{name}": len(one) for name, one in matchers.items()},
            "objects": len(coordinator.matching.objects),
            "streams": len(outboxes),
            "idf_generation": coordinator.matching.generation,
            "idf_coming_into_force": int(coordinator.matching.is_reweighing),
            "commands_waiting": loop.waiting_count,
            "tenants_paced": len(loop.fair_shares.paces),
            "events_waiting": sum(one.queued_count - one.written_count for one in outboxes),
            "late_mutations_waiting": coordinator.late_count,
            "sink_waiting": coordinator.counters.sink_waiting,
            **{f"bridge_failing.{one.name}": coordinator.counters.bridge_failing[one] for one in Feed},
            "memory_bytes.OBJECTS": engine.objects.memory_bytes(),
            "memory_bytes.OBJECT_INDEX": engine.objects.index.memory_bytes(),
            **{f"memory_bytes.{name}": one.memory_bytes() for name, one in matchers.items()},
            "store_bytes.DATABASE": _size_bytes(self._files[0]),
            "store_bytes.LOG": _size_bytes(self._files[1]),
            "kernels_compiled": coordinator.counters.kernels_compiled,
            "kernels_missing": coordinator.counters.kernels_missing,
            "kernels_compiled_late": Kernel.compiled_count,
            **coordinator.counters.times(),
            **self._cluster_gauges(),
        }

    def _cluster_gauges(self) -> dict[str, int]:
        placement = self._coordinator.placement
        return dict.fromkeys(GAUGES, 0) if placement is None else placement.gauges()

    def _silence(self) -> Classes:
        """Return the distribution of the times since attached devices were last seen."""
        found = Distribution(*_SILENCE_BITS)
        sessions = self._coordinator.sessions.made()
        step = 1 + len(sessions) // _SESSIONS_MAX
        now_ms = self._coordinator.clock.lease_ms
        found.note_all(
            max(0, now_ms - one.last_seen_ms)
            for one in islice(sessions, 0, None, step)
            if one.is_attached
        )
        classes = found.classes()
        return Classes(
            classes.bounds, tuple(count * step for count in classes.counts), classes.total * step
        )


_SILENCE_BITS = (7, 24)
"""From an eighth of a second to 4.7 hours."""


def _size_bytes(file: Path) -> int:
    with suppress(OSError):
        return file.stat().st_size
    return 0
