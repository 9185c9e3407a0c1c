"""Keys of live objects. Each publisher has its own keys, and cannot take the key of another.

Operations: O(1) with an owner, O(owners) without.
"""

from __future__ import annotations

from collections.abc import Iterator

from identity.principal import tenant_of


class ObjectKeys:
    """The live object of each owner and key."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[str, int]] = {}
        """By owner and key. Owners without keys are absent."""

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Yield owner, key and id of each object."""
        for owner, ids in self._ids.items():
            for key, object_id in ids.items():
                yield owner, key, object_id

    def of(self, owner: str) -> dict[str, int]:
        """Return the ids of an owner's objects by key."""
        return self._ids.get(owner, {})

    def get(self, owner: str, key: str) -> int | None:
        """Return the id of an owner's object."""
        return self.of(owner).get(key)

    def find(self, tenant: str, key: str) -> list[int]:
        """Return the ids of all objects of a tenant with a key, oldest first."""
        found = (ids.get(key) for owner, ids in self._ids.items() if tenant_of(owner) == tenant)
        return sorted(object_id for object_id in found if object_id is not None)

    def put(self, owner: str, key: str, object_id: int) -> None:
        """Set the object of a key."""
        self._ids.setdefault(owner, {})[key] = object_id

    def remove(self, owner: str, key: str) -> None:
        """Remove a key."""
        ids = self._ids.get(owner)
        if ids is not None:
            ids.pop(key, None)
            if not ids:
                del self._ids[owner]
