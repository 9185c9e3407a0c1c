"""Owners of live objects: a number per row, and the totals of each owner. O(1) per object."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from identity.principal import tenant_of
from index.tables.growth import longer

_Slots = npt.NDArray[np.integer]


class OwnerColumn:
    """Owners by slot. The number of an owner without objects is released."""

    def __init__(self) -> None:
        self._number: npt.NDArray[np.int32] = np.zeros(16, dtype=np.int32)  # by slot
        self._number_of: dict[str, int] = {}
        self._names: list[str] = []
        self._counts: list[int] = []
        self._bytes: list[int] = []  # of payloads
        self._tenants: list[str] = []  # by number, too
        self._count_of_tenant: Counter[str] = Counter()
        self._bytes_of_tenant: Counter[str] = Counter()
        self._free: list[int] = []

    def put(self, slots: _Slots, owners: Sequence[str], sizes: Sequence[int], end: int) -> None:
        """Record the owners of objects in slots below `end`, and the sizes of their payloads."""
        self._number = longer(self._number, end)
        numbers = []
        for owner, size in zip(owners, sizes, strict=True):
            number = self._number_of.get(owner)
            if number is None:
                number = self._begin(owner)
            self._note(number, 1, size)
            numbers.append(number)
        self._number[slots] = numbers

    def take(self, slots: _Slots, sizes: Sequence[int]) -> None:
        """Remove the objects in slots, with the sizes of their payloads."""
        numbers = self._number[slots].tolist()
        size_of: defaultdict[int, int] = defaultdict(int)
        for number, size in zip(numbers, sizes, strict=True):
            size_of[number] += size
        for number, count in Counter(numbers).items():
            self._note(number, -count, -size_of[number])
            if self._counts[number] == 0:
                del self._number_of[self._names[number]]
                self._names[number] = ""
                self._free.append(number)

    def _note(self, number: int, count: int, size: int) -> None:
        tenant = self._tenants[number]
        self._counts[number] += count
        self._bytes[number] += size
        self._count_of_tenant[tenant] += count
        self._bytes_of_tenant[tenant] += size

    def names(self, slots: _Slots) -> list[str]:
        """Return the owners of the objects in slots."""
        return [self._names[number] for number in self._number[slots].tolist()]

    def are_of_tenant(self, slots: _Slots, tenant: str) -> npt.NDArray[np.bool_]:
        """Return whether the object in each slot is of a tenant. O(slots + owners)."""
        is_own = np.array([one == tenant for one in self._tenants], dtype=np.bool_)
        found: npt.NDArray[np.bool_] = is_own[self._number[slots]]
        return found

    def count(self, owner: str) -> int:
        """Return the number of objects of an owner."""
        number = self._number_of.get(owner)
        return 0 if number is None else self._counts[number]

    def size(self, owner: str) -> int:
        """Return the size in bytes of the payloads of an owner's objects."""
        number = self._number_of.get(owner)
        return 0 if number is None else self._bytes[number]

    def size_of_tenant(self, tenant: str) -> int:
        """Return the size in bytes of the payloads of all owners of a tenant."""
        return self._bytes_of_tenant[tenant]

    def count_of_tenant(self, tenant: str) -> int:
        """Return the number of objects of all owners of a tenant."""
        return self._count_of_tenant[tenant]

    @property
    def nbytes(self) -> int:
        """The size of the column in bytes."""
        return self._number.nbytes

    def _begin(self, owner: str) -> int:
        if self._free:
            number = self._free.pop()
            self._names[number], self._tenants[number] = owner, tenant_of(owner)
        else:
            number = len(self._names)
            self._names.append(owner)
            self._tenants.append(tenant_of(owner))
            self._counts.append(0)
            self._bytes.append(0)
        self._number_of[owner] = number
        return number
