"""The objects that are alive by the time of the log, which decides about keys, owners and quotas.

The clock of a node is ahead of the log. What has expired by this clock is no longer matched nor sent, but
entries that come later may still refer to it. So a node keeps such objects here until the time of the log
has passed their expiry: those of half a second, or more while a node cannot reach the log.

Operations: O(1) per object, O(log kept objects) per expiry.
"""

from __future__ import annotations

import heapq
from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, Sequence

from identity.principal import tenant_of
from server.core.object_keys import ObjectKeys
from server.core.object_table import ObjectTable
from server.model import LiveObject

_GONE_MIN = 1_024
"""As many objects that are not kept any more may always stay in the heap of expiries."""


class LogObjects:
    """Live objects by id: those that are matched, and those that are kept.

    Parameters
    ----------
    matched
        The objects that are alive by the clock of the node, too.
    """

    def __init__(self, matched: ObjectTable) -> None:
        self._matched = matched
        self._kept: dict[int, LiveObject] = {}
        self._expiries: list[tuple[int, int]] = []
        """A heap of expiries and ids, up to some more than half of objects that are no longer kept."""
        self.kept_keys = ObjectKeys()
        """Keys of kept objects."""
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        """Number of kept objects, and bytes of their payloads, by owner."""
        self._tenant_counts: Counter[str] = Counter()
        self._tenant_bytes: Counter[str] = Counter()

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._kept or object_id in self._matched

    def __getitem__(self, object_id: int) -> LiveObject:
        found = self._kept.get(object_id)
        return self._matched[object_id] if found is None else found

    def owners(self, ids: Sequence[int]) -> list[str]:
        """Return the owners of live objects."""
        return [self[object_id].owner for object_id in ids]

    def count_of(self, owner: str) -> int:
        """Return the number of live objects of an owner."""
        return self._matched.count_of(owner) + self._counts[owner]

    def count_of_tenant(self, tenant: str) -> int:
        """Return the number of live objects of a tenant."""
        return self._matched.count_of_tenant(tenant) + self._tenant_counts[tenant]

    def size_of(self, owner: str) -> int:
        """Return the size in bytes of the payloads of an owner's live objects."""
        return self._matched.size_of(owner) + self._bytes[owner]

    def size_of_tenant(self, tenant: str) -> int:
        """Return the size in bytes of the payloads of a tenant's live objects."""
        return self._matched.size_of_tenant(tenant) + self._tenant_bytes[tenant]

    def all(self) -> list[LiveObject]:
        """Return all live objects by id. O(objects log objects)."""
        found = [*self._matched.values(), *self._kept.values()]
        return sorted(found, key=lambda item: item.object_id)

    # -- kept objects ----------------------------------------------------------------------------

    def keep(self, item: LiveObject) -> None:
        """Keep an object that is not, or no longer, matched."""
        self._kept[item.object_id] = item
        heapq.heappush(self._expiries, (item.expiry_ms, item.object_id))
        if item.key:
            self.kept_keys.put(item.owner, item.key, item.object_id)
        self._count(item, 1)

    def is_kept(self, object_id: int) -> bool:
        """Return whether an object is kept."""
        return object_id in self._kept

    def remove(self, object_id: int) -> None:
        """Remove a kept object."""
        item = self._kept.pop(object_id)
        if item.key:
            self.kept_keys.remove(item.owner, item.key)
        self._count(item, -1)
        if len(self._expiries) > 2 * len(self._kept) + _GONE_MIN:
            self._expiries = [(one.expiry_ms, one.object_id) for one in self._kept.values()]
            heapq.heapify(self._expiries)

    def expire(self, log_ms: int) -> list[tuple[int, int]]:
        """Remove the kept objects that have expired by the time of the log; return expiries and ids."""
        found = []
        while self._expiries and self._expiries[0][0] <= log_ms:
            expiry_ms, object_id = heapq.heappop(self._expiries)
            if object_id in self._kept:
                self.remove(object_id)
                found.append((expiry_ms, object_id))
        return found

    def _count(self, item: LiveObject, change: int) -> None:
        tenant, size = tenant_of(item.owner), change * len(item.payload)
        self._counts[item.owner] += change
        self._bytes[item.owner] += size
        self._tenant_counts[tenant] += change
        self._tenant_bytes[tenant] += size
        if not self._counts[item.owner]:
            del self._counts[item.owner], self._bytes[item.owner]


class LogKeys:
    """Keys of the objects that are alive by the time of the log.

    Parameters
    ----------
    matched, kept
        Keys of matched and of kept objects; no key of an owner is in both.
    """

    def __init__(self, matched: ObjectKeys, kept: ObjectKeys) -> None:
        self._matched, self._kept = matched, kept

    def of(self, owner: str) -> Mapping[str, int]:
        """Return the ids of an owner's objects by key."""
        kept = self._kept.of(owner)
        return ChainMap(kept, self._matched.of(owner)) if kept else self._matched.of(owner)

    def get(self, owner: str, key: str) -> int | None:
        """Return the id of an owner's object."""
        return self.of(owner).get(key)

    def find(self, tenant: str, key: str) -> list[int]:
        """Return the ids of all objects of a tenant with a key, oldest first."""
        found: Iterable[int] = (*self._matched.find(tenant, key), *self._kept.find(tenant, key))
        return sorted(found)
