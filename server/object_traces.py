"""Traces: the path of some objects, from the publisher's request to the devices that receive them.

For a share of all publish requests the first object is traced: read, waited for the store, committed,
matched, delivered to each device. A trace has names, times, ids and numbers: no position, no keyword, no
payload.

Operations: O(1) per request; O(events) per write while some object is traced. At most `FOLLOWED_MAX`
are, each until `FOLLOWED_NS` have passed or it was delivered `_DELIVERIES_MAX` times.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from identity.principal import local_name
from server.command import Command, Publish
from server.model import LiveObject
from server.session import Event
from server.session.events import VersionedDelta

FOLLOWED_MAX = 256
FOLLOWED_NS = 60_000_000_000
_DELIVERIES_MAX = 100


class Span(NamedTuple):
    """A step in the path of an object. Times are of the wall clock, nanoseconds since 1970."""

    object_id: int
    name: str
    began_ns: int
    ended_ns: int
    facts: dict[str, str | int]
    """Ids and numbers."""


Export = Callable[[Sequence[Span]], None]
"""Receives spans of an object: first that of its publication, the root, its steps, then deliveries."""


class _Followed:
    """An object that is traced."""

    __slots__ = ("deliveries_count", "matched_ns", "read_ns")

    def __init__(self, read_ns: int) -> None:
        self.read_ns = read_ns
        self.matched_ns = 0
        self.deliveries_count = 0


class ObjectTraces:
    """Traces objects.

    Parameters
    ----------
    share
        Share of publish requests, from 0 to 1.
    export
        Receives the spans.
    clock
        Wall clock in nanoseconds.
    """

    def __init__(self, share: float, export: Export, clock: Callable[[], int] = time.time_ns) -> None:
        self._share = share
        self._export = export
        self._clock = clock
        self._chance = random.Random()
        self._requests: dict[int, tuple[Publish, int]] = {}  # by identity: commands may be equal
        self._followed: dict[int, _Followed] = {}
        self._began_ns = 0
        self._committed: list[tuple[int, _Followed, int, int]] = []
        """Object, its trace, objects of its request, time. It may be followed no more by then."""

    def __len__(self) -> int:
        """Return the number of traced objects."""
        return len(self._followed)

    def read(self, command: Publish, read_ns: int) -> None:
        """Record that a request was accepted, and when it was read."""
        if self._chance.random() < self._share:
            self._requests[id(command)] = (command, read_ns)

    def begin_commit(self) -> None:
        """Record that a batch is about to be committed."""
        self._began_ns = self._clock()

    def committed(self, command: Command, created: Sequence[LiveObject]) -> None:
        """Record that the objects of a command are on disk. There are none if it was refused or known."""
        found = self._requests.pop(id(command), None)
        if found is None or not created:
            return
        now_ns = self._clock()
        self._forget(now_ns)
        object_id = created[0].object_id
        one = self._followed[object_id] = _Followed(found[1])
        self._committed.append((object_id, one, len(created), now_ns))

    def matched(self) -> None:
        """Record that the committed objects were matched, and wait in the outboxes of devices."""
        now_ns = self._clock()
        for object_id, one, count, committed_ns in self._committed:
            one.matched_ns = now_ns
            steps = (
                ("publish", one.read_ns, now_ns),
                ("wait", one.read_ns, self._began_ns),
                ("commit", self._began_ns, committed_ns),
                ("match", committed_ns, now_ns),
            )
            facts: dict[str, str | int] = {"nearcast.objects_of_request": count}
            self._export([Span(object_id, *step, facts) for step in steps])
        self._committed.clear()

    def written(self, events: Sequence[tuple[str, Event]]) -> None:
        """Record the events that were written to a stream."""
        if not self._followed:
            return
        now_ns = self._clock()
        found = []
        for device_id, event in events:
            if not isinstance(event, VersionedDelta):
                continue
            for item, _ in event.delta.add:
                one = self._followed.get(item.object_id)
                if one is None:
                    continue
                one.deliveries_count += 1
                if one.deliveries_count >= _DELIVERIES_MAX:
                    del self._followed[item.object_id]
                facts: dict[str, str | int] = {
                    "nearcast.device_id": local_name(device_id),
                    "nearcast.subscription_id": event.subscription_id,
                    "nearcast.cause": event.delta.cause.name,
                }
                found.append(Span(item.object_id, "deliver", one.matched_ns, now_ns, facts))
        if found:
            self._export(found)

    def _forget(self, now_ns: int) -> None:
        """Stop tracing old objects, and the oldest beyond the maximum."""
        while self._followed:
            object_id, oldest = next(iter(self._followed.items()))
            is_over = now_ns - oldest.read_ns > FOLLOWED_NS
            if not is_over and len(self._followed) < FOLLOWED_MAX:
                break
            del self._followed[object_id]
