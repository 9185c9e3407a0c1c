"""What a log means, from the definition: every object that was ever accepted, and plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cluster.entries import (
    Advance,
    Publish,
    Retract,
    SetRules,
    SetSink,
    SinkSent,
    TakeIn,
    UseWindows,
)
from nearcast.canonical import NewObject
from nearcast.errors import Reason
from safe_region import oracle
from safe_region.earth.shapes import Bounds
from tests.replication.local_node import FRAME, LIMITS

OUTCOMES_MS = 120_000
LATE_MS = 60_000
WINDOWS_MS = 180_000


@dataclass
class Accepted:
    """An object, and when it ended early, if it did."""

    object_id: int
    new: NewObject
    owner: str
    created_ms: int
    has_ended: bool = False


class Model:
    """The state by the time of the log."""

    def __init__(self) -> None:
        self.log_ms = 0
        self.rules = 1
        self.objects: list[Accepted] = []
        self.outcomes: dict[bytes, tuple[int, Any]] = {}
        self.seen: list[tuple[bytes, Any]] = []
        """All replies, in order."""
        self.source: dict[str, list[str]] = {}
        """By stream: the offsets of the entries that had an effect."""
        self.windows: dict[str, tuple[int, frozenset]] = {}
        """By node: when it has claimed windows, and which."""
        self.has_sink = False
        self.change_count = 0
        self.waiting: list[tuple[int, str, int]] = []
        """The changes that wait for the sink: number, action, object."""
        self.noted: list[tuple[str, int]] = []
        """All changes that have waited."""

    def apply(self, message) -> None:
        for entry in message.entries:
            self._pass_time(entry.time_ms)
            self.outcomes = {
                number: one for number, one in self.outcomes.items() if one[0] > self.log_ms - OUTCOMES_MS
            }
            if isinstance(entry.change, SetRules):
                self.rules = entry.change.rules
            if entry.request_id:
                if entry.request_id not in self.outcomes:
                    is_late = self.rules > 1 and 0 < entry.time_ms < self.log_ms - LATE_MS
                    reply = Reason.INTERNAL if is_late else self._decide(entry.change)
                    self.outcomes[entry.request_id] = self.log_ms, reply
                self.seen.append((entry.request_id, self.outcomes[entry.request_id][1]))

    def alive(self) -> list[Accepted]:
        return [one for one in self.objects if self._is_alive(one)]

    def _is_alive(self, one) -> bool:
        return not one.has_ended and self.log_ms < one.created_ms + one.new.ttl_ms

    def _pass_time(self, time_ms) -> None:
        before = self.alive()
        self.log_ms = max(self.log_ms, time_ms)
        expired = [one for one in before if not self._is_alive(one)]
        expired.sort(key=lambda one: (one.created_ms + one.new.ttl_ms, one.object_id))
        self._note("expire", expired)

    def _note(self, action, items) -> None:
        for one in items if self.has_sink else ():
            self.change_count += 1
            self.noted.append((action, one.object_id))
            self.waiting.append((self.change_count, action, one.object_id))

    def _decide(self, change):
        match change:
            case TakeIn():
                return self._take_in(change)
            case Publish():
                return self._publish(change)
            case Retract():
                return self._retract(change)
            case Advance(time_ms):
                self._pass_time(time_ms)
                return time_ms
            case UseWindows(node, windows, must):
                return self._use(node, frozenset(windows), must)
            case SetSink(is_on):
                if is_on != self.has_sink:
                    self.has_sink = is_on
                    self.waiting.clear()
            case SinkSent(number):
                self.waiting = [one for one in self.waiting if one[0] > number]
        return None

    def _use(self, node, windows, must):
        before = {one for _, used in self.windows.values() for one in used}
        claims = {
            name: (at_ms, used)
            for name, (at_ms, used) in self.windows.items()
            if at_ms + WINDOWS_MS > self.log_ms and name != node
        }
        claims[node] = self.log_ms, windows
        after = {one for _, used in claims.values() for one in used}
        if not must and len(after) > LIMITS.windows_max and not after <= before:
            return Reason.TOO_MANY
        self.windows = claims
        return None

    def _take_in(self, change):
        offsets = self.source.setdefault(change.stream, [])
        if tuple(change.before) != (offsets[-1] if offsets else "", len(offsets)):
            return False
        if len(self.waiting) >= LIMITS.sink_max:
            return Reason.TOO_MANY
        offsets.append(change.offset)
        known = {one.new.key: one for one in self.alive() if not one.owner and one.new.key}
        gone = [known[key] for key in sorted(set(change.gone)) if key in known]
        for one in gone:
            one.has_ended = True
        self._note("retract", gone)
        count = len(self.objects)
        for new in change.objects:
            if new.key not in known and new.key not in change.gone:
                known[new.key] = Accepted(len(self.objects) + 1, new, "", self.log_ms)
                self.objects.append(known[new.key])
        self._note("publish", self.objects[count:])
        return True

    def _publish(self, change):
        owner = change.caller.id
        mine = {one.new.key: one for one in self.alive() if one.owner == owner and one.new.key}
        same = [mine.get(new.key) if new.key else None for new in change.objects]
        fresh = [
            (new, old) for new, old in zip(change.objects, same, strict=True) if not _is_same(old, new)
        ]
        gone = [old for _, old in fresh if old is not None]
        is_full = len(self.waiting) >= LIMITS.sink_max
        if is_full or self._is_beyond(owner, [new for new, _ in fresh], gone):
            return Reason.TOO_MANY
        for old in gone:
            old.has_ended = True
        self._note("retract", gone)
        ids, count = [], len(self.objects)
        for new, old in zip(change.objects, same, strict=True):
            if _is_same(old, new):
                ids.append(old.object_id)
            else:
                ids.append(len(self.objects) + 1)
                self.objects.append(Accepted(ids[-1], new, owner, self.log_ms))
        self._note("publish", self.objects[count:])
        return ids

    def _is_beyond(self, owner, fresh, gone) -> bool:
        alive = self.alive()
        mine = [one for one in alive if one.owner == owner]
        more, grown = len(fresh) - len(gone), _bytes(fresh) - _bytes(one.new for one in gone)
        return (
            (owner and more > 0 and len(mine) + more > LIMITS.publisher_objects_max)
            or (more > 0 and len(alive) + more > LIMITS.tenant_objects_max)
            or (
                owner
                and grown > 0
                and _bytes(one.new for one in mine) + grown > LIMITS.publisher_bytes_max
            )
        )

    def _retract(self, change: Retract):
        alive, caller = self.alive(), change.caller
        found = []
        for object_id in change.ids:
            match = [one for one in alive if one.object_id == object_id]
            if not match:
                return Reason.UNKNOWN_OBJECT
            if match[0].owner != caller.id and "operator" not in caller.roles:
                return Reason.PERMISSION_DENIED
            found += match
        for key in change.keys:
            named = [one for one in alive if one.new.key == key]
            mine = [one for one in named if one.owner == caller.id]
            if not mine and "operator" in caller.roles:
                if len(named) > 1:
                    return Reason.INVALID_FIELD
                mine = named
            if not mine:
                return Reason.UNKNOWN_OBJECT
            found += mine
        named = [one for i, one in enumerate(found) if one not in found[:i]]
        for one in named:
            one.has_ended = True
        self._note("retract", named)
        return None

    def oracle_objects(self):
        return [
            oracle.OracleObject(
                one.object_id,
                *FRAME.project(one.new.lon, one.new.lat),
                frozenset(one.new.keywords),
                one.created_ms,
                one.created_ms + one.new.ttl_ms,
                _plane(one.new.area),
            )
            for one in self.alive()
        ]


def _is_same(old, new) -> bool:
    return old is not None and old.new == new


def _bytes(items) -> int:
    return sum(len(new.payload) for new in items)


def _plane(area):
    if area is None:
        return None
    if isinstance(area, Bounds):
        low, high = FRAME.project(area.lon_min, area.lat_min), FRAME.project(area.lon_max, area.lat_max)
        return oracle.OracleRectangle(*low, *high)
    return oracle.OraclePolygon((tuple(FRAME.project(*corner) for corner in area.outer),))
