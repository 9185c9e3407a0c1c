"""Owners of live objects: a number a row, and how many objects each owner has. O(1) an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from index.tables.growth import longer
from server.principal import tenant_of

_Slots = npt.NDArray[np.integer]


class OwnerColumn:
    """Owners by slot. An owner without objects gives its number back."""

    def __init__(self) -> None:
        self._number: npt.NDArray[np.int32] = np.zeros(16, dtype=np.int32)  # by slot
        self._number_of: dict[str, int] = {}
        self._names: list[str] = []
        self._counts: list[int] = []
        self._tenants: list[str] = []  # by number, too
        self._count_of_tenant: Counter[str] = Counter()
        self._free: list[int] = []

    def put(self, slots: _Slots, owners: Sequence[str], end: int) -> None:
        """Note whose objects are in slots below `end`, which are new."""
        self._number = longer(self._number, end)
        numbers = []
        for owner in owners:
            number = self._number_of.get(owner)
            if number is None:
                number = self._begin(owner)
            self._counts[number] += 1
            self._count_of_tenant[self._tenants[number]] += 1
            numbers.append(number)
        self._number[slots] = numbers

    def take(self, slots: _Slots) -> None:
        """Forget the objects in slots."""
        for number in self._number[slots].tolist():
            self._counts[number] -= 1
            self._count_of_tenant[self._tenants[number]] -= 1
            if self._counts[number] == 0:
                del self._number_of[self._names[number]]
                self._names[number] = ""
                self._free.append(number)

    def names(self, slots: _Slots) -> list[str]:
        """Return whose the objects in slots are."""
        return [self._names[number] for number in self._number[slots].tolist()]

    def count(self, owner: str) -> int:
        """Return how many objects an owner has."""
        number = self._number_of.get(owner)
        return 0 if number is None else self._counts[number]

    def count_of_tenant(self, tenant: str) -> int:
        """Return how many objects all owners of a tenant have."""
        return self._count_of_tenant[tenant]

    @property
    def nbytes(self) -> int:
        """Size of the column."""
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
        self._number_of[owner] = number
        return number
