"""Inspection: the server's state of one device, one subscription or one object, with keywords as text.

It changes nothing, and creates no session for a device that was only restored from the store. Costs are
those of a search for `RANKS_MAX` objects.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import islice
from typing import NamedTuple

import numpy as np

from engine import inspection as engine
from engine.contracts import STATIONARY, TOP_K, kind_of
from identity.principal import Principal
from identity.rules import is_visible
from nearcast.errors import Reason, RefusedError
from safe_region.scoring.formulas import length
from server.core.coordinator import Coordinator
from server.model import Bound, LiveObject, Reach, Slack, Spec
from server.session import Session, State

RANKS_MAX = 1_000
"""Objects beyond have no rank, except for boolean subscriptions, whose matches are all found."""
_SHOWN_MAX = 5
"""Maximum number of ids that a refusal names."""

_HOLDERS_MAX = 1_000


class Verdict(IntEnum):
    """Why a device has an object for a subscription, or does not. The numbers equal those on the wire."""

    HELD = 1
    UNKNOWN_OBJECT = 2
    GONE = 3
    PARKED = 4
    NO_COMMON_KEYWORD = 5
    NO_CLAUSE = 6
    OUT_OF_WINDOW = 7
    PENDING = 8
    BEYOND_REACH = 9
    DOMINATED = 10
    NOT_AMONG_K = 11
    OUT_OF_RANGE = 12
    TOO_MANY = 13


class Held(NamedTuple):
    """An object that a device is to hold, as seen from the anchor."""

    object_id: int
    rank: int
    """From 1, among all qualifying objects; 0 if it is not known."""
    length_m: float
    r_m: float
    item: LiveObject


class Judgement(NamedTuple):
    """Why a device has an object, or does not; zeros for unknown values."""

    object_id: int
    verdict: Verdict
    rank: int = 0
    length_m: float = 0.0
    r_m: float = 0.0


class InspectedSubscription(NamedTuple):
    """The state of a subscription."""

    device_id: str
    subscription_id: int
    name: str
    """The name that the app gave; empty for none."""
    spec: Spec
    is_awake: bool
    is_pending: bool
    """Whether objects wait for a position of the device."""
    anchor: tuple[float, float]
    place: tuple[float, float]
    """The anchor in degrees: lon, lat."""
    bound: Bound | None
    """None for a parked subscription, which has neither anchor nor bound."""
    held: tuple[Held, ...]
    judgement: Judgement | None


class InspectedDevice(NamedTuple):
    """The state of a device."""

    device_id: str
    state: State
    version: int
    kept_count: int
    """Deltas that the device has not acknowledged."""
    waiting_count: int
    """Deltas, and ends of subscriptions, that wait in the device's outbox."""
    report_sequence: int
    silent_ms: int | None
    """Time since the device was last seen; None if it was not attached since the server started."""
    lease_ms: int
    subscriptions: tuple[InspectedSubscription, ...]


class Holder(NamedTuple):
    """A subscription whose device is to hold an object."""

    device_id: str
    subscription_id: int


class InspectedObject(NamedTuple):
    """The state of a live object."""

    item: LiveObject
    holder_count: int
    holders: tuple[Holder, ...]


Inspected = InspectedDevice | InspectedSubscription | InspectedObject


class Inspector:
    """Reads the state of a coordinator.

    Parameters
    ----------
    coordinator
        The coordinator to inspect.
    caller
        The principal of the request. It sees the data of its tenant only.
    """

    def __init__(self, coordinator: Coordinator, caller: Principal) -> None:
        self._coordinator = coordinator
        self._caller = caller
        self._matching = coordinator.matching
        self._engine = coordinator.matching.engine

    def device(self, device_id: str) -> InspectedDevice:
        """Return the state of a device.

        Raises
        ------
        RefusedError
            UNKNOWN_SUBSCRIPTION, if the device is not attached and has no subscriptions.
        """
        handles = self._handles(device_id)
        subscriptions = tuple(
            self._subscription(device_id, number, handle) for number, handle in sorted(handles.items())
        )
        session = self._coordinator.sessions.made_of(device_id)
        lease_ms = self._coordinator.leases.lease_ms
        if session is None:
            return InspectedDevice(device_id, State.PARKED, 0, 0, 0, 0, None, lease_ms, subscriptions)
        return InspectedDevice(
            device_id,
            session.state,
            session.version,
            session.kept_count,
            session.waiting_count,
            session.report_sequence,
            self._silent_ms(session),
            lease_ms,
            subscriptions,
        )

    def subscription(
        self, device_id: str, subscription_id: int, object_id: int = 0, object_key: str = ""
    ) -> InspectedSubscription:
        """Return the state of a subscription, and why its device has an object or not.

        Raises
        ------
        RefusedError
            UNKNOWN_SUBSCRIPTION, if there is none; UNKNOWN_OBJECT, if no live object has the key.
        """
        handles = self._handles(device_id)
        handle = handles.get(subscription_id)
        if handle is None:
            numbers = ", ".join(map(str, sorted(handles)[:_SHOWN_MAX]))
            limit = f"a subscription of the device: it has {numbers or 'none'}"
            raise RefusedError(Reason.UNKNOWN_SUBSCRIPTION, "subscription_id", subscription_id, limit)
        if object_key:
            object_id = self._id_of(object_key, "subscription.object_key")
        found = self._subscription(device_id, subscription_id, handle)
        if not found.is_awake:
            judgement = self._early_verdict(found, object_id) if object_id else None
            return found._replace(judgement=judgement)
        qualifying = engine.qualifying(self._engine, handle, RANKS_MAX)
        ranks = {one: rank for rank, one in enumerate(qualifying.tolist(), 1)}
        ids, shares = self._engine.held(handle)
        items = self._matching.objects.ready(ids.tolist())
        held = tuple(
            Held(one, ranks.get(one, 0), self._length(found, one, r_m), r_m, items[one])
            for one, r_m in zip(ids.tolist(), shares.tolist(), strict=True)
        )
        found = found._replace(held=tuple(sorted(held, key=lambda one: (one.length_m, one.object_id))))
        if not object_id:
            return found
        return found._replace(judgement=self._judged(found, handle, object_id, ranks))

    def object(self, object_id: int, object_key: str = "") -> InspectedObject:
        """Return the state of a live object, without its payload.

        Raises
        ------
        RefusedError
            UNKNOWN_OBJECT, if there is none.
        """
        if object_key:
            object_id = self._id_of(object_key, "object_key")
        if not self._is_there(object_id):
            raise RefusedError(Reason.UNKNOWN_OBJECT, "object_id", object_id, "a live object")
        handles = engine.holders(self._engine, object_id)
        owners = (self._coordinator.router.owner(one) for one in islice(handles, _HOLDERS_MAX))
        holders = tuple(Holder(session.device_id, number) for session, number in owners)
        return InspectedObject(self._matching.objects[object_id], len(handles), holders)

    def _id_of(self, object_key: str, field: str) -> int:
        """Return the id of the live object with a key."""
        found = self._coordinator.keys.find(self._caller.tenant, object_key)
        shown = repr(self._caller.local(object_key))
        if not found:
            limit = "the key of a live object: it has expired, was retracted or was never published"
            raise RefusedError(Reason.UNKNOWN_OBJECT, field, shown, limit)
        if len(found) > 1:
            ids = ", ".join(map(str, found[:_SHOWN_MAX]))
            limit = f"the key of one object; {len(found)} publishers use it: give an id, {ids}"
            raise RefusedError(Reason.INVALID_FIELD, field, shown, limit)
        return found[0]

    def _is_there(self, object_id: int) -> bool:
        """Return whether an object is alive and visible to the caller."""
        objects = self._matching.objects
        return object_id in objects and is_visible(self._caller, objects.owners([object_id])[0])

    def _handles(self, device_id: str) -> dict[int, int]:
        handles = self._coordinator.sessions.handles_of(device_id)
        if handles is None:
            limit = "a device that is attached or has subscriptions"
            raise RefusedError(
                Reason.UNKNOWN_SUBSCRIPTION, "device_id", repr(self._caller.local(device_id)), limit
            )
        return handles

    def _silent_ms(self, session: Session) -> int | None:
        if not session.was_attached:
            return None
        return max(0, self._coordinator.clock.lease_ms - session.last_seen_ms)

    def _subscription(self, device_id: str, number: int, handle: int) -> InspectedSubscription:
        """Return the state of a subscription without the objects that its device holds."""
        handles = np.array([handle], dtype=np.int64)
        is_awake = bool(self._engine.are_awake(handles)[0])
        anchor, place, bound = (0.0, 0.0), (0.0, 0.0), None
        if is_awake:
            bounds = self._engine.bounds(handles)
            anchor = (float(bounds.x_m[0]), float(bounds.y_m[0]))
            place = self._matching.frame.unproject(*anchor)
            bound = self._matching.bound(handle, float(bounds.bound_m[0]), int(bounds.bound_id[0]))
        is_pending = bool(self._engine.are_pending(handles)[0])
        name, spec = self._coordinator.router.name_of(handle), self._matching.spec(handle)
        return InspectedSubscription(
            device_id, number, name, spec, is_awake, is_pending, anchor, place, bound, (), None
        )

    def _length(self, found: InspectedSubscription, object_id: int, r_m: float) -> float:
        """Return the length of an object at the anchor, or its distance from there."""
        point = self._matching.objects[object_id].point
        x_m, y_m = found.anchor
        return length(x_m - point.x_m, y_m - point.y_m, r_m)

    def _early_verdict(self, found: InspectedSubscription, object_id: int) -> Judgement | None:
        """Return the judgement of a parked subscription or an object that is not alive; else None."""
        if not self._is_there(object_id):
            was_there = 0 < object_id <= self._coordinator.latest_object_id
            return Judgement(object_id, Verdict.GONE if was_there else Verdict.UNKNOWN_OBJECT)
        return None if found.is_awake else Judgement(object_id, Verdict.PARKED)

    def _judged(
        self, found: InspectedSubscription, handle: int, object_id: int, ranks: dict[int, int]
    ) -> Judgement:
        early = self._early_verdict(found, object_id)
        if early is not None:
            return early
        is_boolean = isinstance(found.bound, Slack)
        r_m = engine.share_m(self._engine, handle, object_id)
        if r_m is None:
            verdict = Verdict.NO_CLAUSE if is_boolean else Verdict.NO_COMMON_KEYWORD
            return Judgement(object_id, verdict)
        length_m = self._length(found, object_id, r_m)
        judgement = Judgement(object_id, Verdict.HELD, ranks.get(object_id, 0), length_m, r_m)
        if any(one.object_id == object_id for one in found.held):
            return judgement
        if not engine.counts_in_window(self._engine, handle, object_id):
            return judgement._replace(verdict=Verdict.OUT_OF_WINDOW)
        if is_boolean:
            return judgement._replace(verdict=self._why_no_match(found, object_id, ranks))
        return judgement._replace(verdict=self._why_not_held(found, handle, judgement))

    @staticmethod
    def _why_no_match(found: InspectedSubscription, object_id: int, ranks: dict[int, int]) -> Verdict:
        """Return why a boolean subscription does not hold an object that matches its expression."""
        if object_id not in ranks:
            return Verdict.OUT_OF_RANGE
        if found.is_pending:
            return Verdict.PENDING
        return Verdict.TOO_MANY

    @staticmethod
    def _why_not_held(found: InspectedSubscription, handle: int, judgement: Judgement) -> Verdict:
        """Return why a top-k subscription does not hold an object that qualifies."""
        if kind_of(handle) == STATIONARY:
            return Verdict.NOT_AMONG_K
        reach = found.bound
        if isinstance(reach, Reach) and kind_of(handle) == TOP_K:
            is_below = (judgement.length_m, judgement.object_id) < (reach.length_m, reach.object_id)
            if is_below:
                return Verdict.PENDING if found.is_pending else Verdict.DOMINATED
        return Verdict.BEYOND_REACH
