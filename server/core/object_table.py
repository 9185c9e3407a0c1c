"""Live objects with keywords and payloads, stored as columns beside the engine's rows.

The table holds three numbers per object; the engine holds its place, expiry and keywords. Dictionaries
hold payloads, keys and areas in degrees, for objects that have them only. A `LiveObject` is created on
demand. A look-up costs O(keywords), put and take O(1) per object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np

from identity.lru_cache import LruCache
from index.batches import Floats, Ints
from index.tables import SlotTable
from index.tables.growth import longer
from safe_region.earth.frame import Area, Point
from safe_region.earth.shapes import ObjectArea
from server.core.keyword_dictionary import KeywordDictionary
from server.core.owner_column import OwnerColumn
from server.model import LiveObject
from server.store.mutations import ObjectColumns

_RECENT_MAX = 32768
"""Objects that each of two generations caches: an object sent to one device is sent to others.

Deltas that wait for acks share them: with an eighth of this number, a server to which 10,000 devices have
reconnected takes 30 MB more.
"""


class RemovedObject(NamedTuple):
    """The data of an object that has been removed."""

    object_id: int
    key: str
    owner: str


class WatchedColumns(NamedTuple):
    """The numbers of live objects."""

    ids: Ints
    lon: Floats
    lat: Floats
    created_ms: Ints
    expiry_ms: Ints

    def part(self, rows: Ints) -> WatchedColumns:
        """Return some of the rows."""
        return WatchedColumns(
            self.ids[rows], self.lon[rows], self.lat[rows], self.created_ms[rows], self.expiry_ms[rows]
        )

    @classmethod
    def joined(cls, parts: Sequence[WatchedColumns]) -> WatchedColumns:
        """Return the rows of all parts."""
        return cls(
            np.concatenate([one.ids for one in parts]),
            np.concatenate([one.lon for one in parts]),
            np.concatenate([one.lat for one in parts]),
            np.concatenate([one.created_ms for one in parts]),
            np.concatenate([one.expiry_ms for one in parts]),
        )


class ObjectTable(Mapping[int, LiveObject]):
    """Live objects by id.

    Parameters
    ----------
    table
        The engine's rows of objects.
    dictionary
        The numbers of keywords.
    """

    def __init__(self, table: SlotTable, dictionary: KeywordDictionary) -> None:
        self._table = table
        self._dictionary = dictionary
        self._lon: Floats = np.zeros(16)
        self._lat: Floats = np.zeros(16)
        self._created_ms: Ints = np.zeros(16, dtype=np.int64)
        self._payloads: dict[int, bytes] = {}
        self._keys: dict[int, str] = {}
        self._areas: dict[int, ObjectArea] = {}
        self._owners = OwnerColumn()
        self._recent: LruCache[int, LiveObject] = LruCache(_RECENT_MAX)

    def put(self, items: Sequence[LiveObject]) -> None:
        """Add objects for which the engine has rows."""
        self._put(
            np.array([item.object_id for item in items], dtype=np.int64),
            np.array([item.lon for item in items]),
            np.array([item.lat for item in items]),
            np.array([item.created_ms for item in items], dtype=np.int64),
            [item.owner for item in items],
            [len(item.payload) for item in items],
        )
        for item in items:
            if item.payload:
                self._payloads[item.object_id] = item.payload
            if item.key:
                self._keys[item.object_id] = item.key
            if item.area is not None:
                self._areas[item.object_id] = item.area
            self._recent.put(item.object_id, item)

    def put_columns(self, columns: ObjectColumns) -> None:
        """Add many objects for which the engine has rows."""
        sizes = list(map(len, columns.payloads))
        self._put(columns.ids, columns.lon, columns.lat, columns.created_ms, columns.owners, sizes)
        ids = columns.ids.tolist()
        self._payloads.update(pair for pair in zip(ids, columns.payloads, strict=True) if pair[1])
        self._keys.update(pair for pair in zip(ids, columns.keys, strict=True) if pair[1])
        self._areas.update(columns.areas)

    def _put(
        self,
        ids: Ints,
        lon: Floats,
        lat: Floats,
        created_ms: Ints,
        owners: Sequence[str],
        sizes: Sequence[int],
    ) -> None:
        slots = self._table.slots(ids)
        self._owners.put(slots, owners, sizes, self._table.end)
        self._lon = longer(self._lon, self._table.end)
        self._lat = longer(self._lat, self._table.end)
        self._created_ms = longer(self._created_ms, self._table.end)
        self._lon[slots], self._lat[slots], self._created_ms[slots] = lon, lat, created_ms

    def take(self, ids: Iterable[int]) -> list[RemovedObject]:
        """Remove objects that the engine is about to remove, and release their keywords."""
        wanted = list(ids)
        slots = self._table.slots(np.array(wanted, dtype=np.int64))
        self._dictionary.give_back_all(self._table.keyword_lists(slots))
        owners = self._owners.names(slots)
        self._owners.take(slots, [len(self._payloads.pop(one, b"")) for one in wanted])
        if self._areas:
            for object_id in wanted:
                self._areas.pop(object_id, None)
        self._recent.discard_all(wanted)
        keys = [self._keys.pop(object_id, "") for object_id in wanted]
        return list(map(RemovedObject, wanted, keys, owners))

    def owners(self, ids: Sequence[int]) -> list[str]:
        """Return the owners of live objects."""
        return self._owners.names(self._table.slots(np.array(ids, dtype=np.int64)))

    def count_of(self, owner: str) -> int:
        """Return the number of live objects of an owner. O(1)."""
        return self._owners.count(owner)

    def count_of_tenant(self, tenant: str) -> int:
        """Return the number of live objects of a tenant. O(1)."""
        return self._owners.count_of_tenant(tenant)

    def size_of(self, owner: str) -> int:
        """Return the size in bytes of the payloads of an owner's live objects. O(1)."""
        return self._owners.size(owner)

    def size_of_tenant(self, tenant: str) -> int:
        """Return the size in bytes of the payloads of a tenant's live objects. O(1)."""
        return self._owners.size_of_tenant(tenant)

    @property
    def slot_end(self) -> int:
        """All objects have smaller slots."""
        return self._table.end

    def within(self, slots: slice, area: Area) -> Ints:
        """Return the slots in a range of live objects that lie in an area, by their points. O(slots)."""
        lon, lat = self._lon[slots], self._lat[slots]
        is_within = (lon >= area.lon_min) & (lon <= area.lon_max)
        is_within &= (lat >= area.lat_min) & (lat <= area.lat_max)
        found: Ints = slots.start + np.flatnonzero(is_within)
        return found[self._table.rows["keyword_count"][found] > 0]

    def with_keyword(self, slots: Ints, keyword: str) -> Ints:
        """Return the slots of objects that have a keyword. O(keywords)."""
        number = self._dictionary.find(keyword)
        if number is None or not len(slots):
            return slots[:0]
        lists = self._table.keyword_lists(slots.astype(np.int32))
        return slots[np.logical_or.reduceat(lists.ids == number, lists.offsets[:-1])]

    def of_tenant(self, slots: Ints, tenant: str) -> Ints:
        """Return the slots of objects of a tenant. O(slots + owners)."""
        return slots[self._owners.are_of_tenant(slots, tenant)]

    def places(self, slots: Ints) -> tuple[Ints, Floats, Floats]:
        """Return the ids and positions of the live objects in slots."""
        return self._table.rows["id"][slots], self._lon[slots], self._lat[slots]

    def columns(self, slots: Ints) -> WatchedColumns:
        """Return the columns of the live objects in slots."""
        expiry_ms = self._table.rows["expiry_ms"][slots]
        return WatchedColumns(*self.places(slots), self._created_ms[slots], expiry_ms)

    def __getitem__(self, object_id: int) -> LiveObject:
        found = self._recent.get(object_id)
        if found is None:
            if object_id not in self:
                raise KeyError(object_id)
            (found,) = self._made([object_id])
        return found

    def ready(self, ids: Sequence[int]) -> dict[int, LiveObject]:
        """Return live objects by id; objects that are not cached are created together."""
        wanted = dict.fromkeys(ids)
        found = {object_id: self._recent.get(object_id) for object_id in wanted}
        missing = [object_id for object_id, item in found.items() if item is None]
        if missing:
            found.update(zip(missing, self._made(missing), strict=True))
        return cast("dict[int, LiveObject]", found)

    def __contains__(self, object_id: object) -> bool:
        return isinstance(object_id, int) and self._table.ids.contains(object_id)

    def __iter__(self) -> Iterator[int]:
        ids: list[int] = np.sort(self._table.rows["id"][self._table.used()]).tolist()
        return iter(ids)

    def __len__(self) -> int:
        return len(self._table)

    def memory_bytes(self) -> int:
        """Return the size of the columns in bytes, without payloads and keys."""
        return self._lon.nbytes + self._lat.nbytes + self._created_ms.nbytes + self._owners.nbytes

    def _made(self, ids: Sequence[int]) -> list[LiveObject]:
        slots = self._table.slots(np.array(ids, dtype=np.int64))
        rows = self._table.rows
        columns = (
            ids,
            self._lon[slots].tolist(),
            self._lat[slots].tolist(),
            map(Point, rows["x_m"][slots].tolist(), rows["y_m"][slots].tolist()),
            self._dictionary.words(self._table.keyword_lists(slots)),
            self._created_ms[slots].tolist(),
            rows["expiry_ms"][slots].tolist(),
            (self._payloads.get(object_id, b"") for object_id in ids),
            (self._keys.get(object_id, "") for object_id in ids),
            map(self._areas.get, ids),
            self._owners.names(slots),
        )
        made = list(map(LiveObject, *columns))
        for item in made:
            self._recent.put(item.object_id, item)
        return made
