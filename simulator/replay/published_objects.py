"""All live objects in the form of the oracle: those that the replay has published and not retracted."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from safe_region import oracle
from safe_region.earth.frame import Frame
from safe_region.scoring.idf import IdfTable
from safe_region.scoring.keywords import normalised_keyword
from simulator.workload.rows import ObjectRow


class Published(NamedTuple):
    """One response of the server: objects and their ids.

    The server accepted them between `since_ms` and `until_ms` of its time; in virtual time that is one
    instant.
    """

    rows: Sequence[ObjectRow]
    ids: Sequence[int]
    since_ms: int
    until_ms: int


class Liveness(NamedTuple):
    """Objects, and the instant for which to decide which of them are alive."""

    objects: Iterable[oracle.OracleObject]
    now_ms: int


@dataclass(slots=True)
class PublishedObjects:
    """The live objects. Memory and time grow with their number, not with the number ever published."""

    frame: Frame
    objects: dict[int, oracle.OracleObject] = field(default_factory=dict)
    """By id, with the earliest possible time of creation."""
    latest_id: int = 0
    tables: dict[int, IdfTable] = field(default_factory=lambda: {0: IdfTable({})})
    """Tables of weights of keywords by generation."""
    _id_of_key: dict[str, int] = field(default_factory=dict)
    _keys: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    """By id: its key, the time at which its row publishes it, and the doubt of its creation time."""
    _expiries: list[tuple[int, int]] = field(default_factory=list)

    def published(self, batch: Published) -> None:
        """Add objects that the server has accepted, replacements included. O(log objects) each."""
        self.latest_id = max(self.latest_id, *batch.ids) if batch.ids else self.latest_id
        for row, object_id in zip(batch.rows, batch.ids, strict=True):
            replaced = self._id_of_key.get(row.object_key)
            if replaced is not None:
                self._forget(replaced)
            self._id_of_key[row.object_key] = object_id
            self._keys[object_id] = (row.object_key, row.publish_ms, batch.until_ms - batch.since_ms)
            x_m, y_m = self.frame.project(row.lon, row.lat)
            keywords = frozenset(normalised_keyword(keyword) for keyword in row.keywords)
            created_ms = batch.since_ms
            self.objects[object_id] = oracle.OracleObject(
                object_id, x_m, y_m, keywords, created_ms, created_ms + row.ttl_ms
            )
            heapq.heappush(self._expiries, (batch.until_ms + row.ttl_ms, object_id))

    def live_id(self, row: ObjectRow, now_ms: int) -> int | None:
        """Return the id of the object that was published for a row, if it is certainly alive then."""
        object_id = self._id_of_key.get(row.object_key)
        if object_id is None or self._keys[object_id][1] != row.publish_ms:
            return None
        found = self.objects.get(object_id)
        return object_id if found is not None and oracle.is_alive(found, now_ms) else None

    def name_of(self, object_id: int) -> tuple[str, int] | None:
        """Return the key of a live object, and the time in the run at which its row publishes it."""
        found = self._keys.get(object_id)
        return None if found is None else found[:2]

    def retracted(self, ids: Sequence[int]) -> None:
        """Remove objects that were retracted."""
        for object_id in ids:
            self._forget(object_id)

    def pass_time(self, now_ms: int) -> None:
        """Remove objects that have certainly expired."""
        while self._expiries and self._expiries[0][0] <= now_ms:
            self._forget(heapq.heappop(self._expiries)[1])

    def at(self, now_ms: int) -> Liveness:
        """Return the live objects at an instant of virtual time."""
        return Liveness(self.objects.values(), now_ms)

    def around(self, since_ms: int, until_ms: int) -> tuple[Liveness, Liveness]:
        """Return the objects certainly alive, and those possibly alive, between two real instants.

        Neither the instant of a creation nor that at which a result is read is known more exactly.
        """
        late = [
            one._replace(
                created_ms=min(one.created_ms + self._keys[one.object_id][2], since_ms),
                expiry_ms=one.expiry_ms + self._keys[one.object_id][2],
            )
            for one in self.objects.values()
        ]
        return Liveness(self.objects.values(), until_ms), Liveness(late, since_ms)

    def _forget(self, object_id: int) -> None:
        self.objects.pop(object_id, None)
        key = self._keys.pop(object_id, None)
        if key is not None and self._id_of_key.get(key[0]) == object_id:
            del self._id_of_key[key[0]]
