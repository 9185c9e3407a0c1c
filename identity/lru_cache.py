"""A cache of bounded size for recently used values.

Operations cost O(1) a value: there are two generations, and the older one is dropped when the younger one
is full.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """At most twice `generation_max` values, including those used last.

    Parameters
    ----------
    generation_max
        Number of values at which a generation is full.
    """

    def __init__(self, generation_max: int) -> None:
        self._generation_max = generation_max
        self._young: dict[_Key, _Value] = {}
        self._old: dict[_Key, _Value] = {}

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def get(self, key: _Key) -> _Value | None:
        """Return the value of a key; None if there is none."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, value: _Value) -> None:
        """Add a value."""
        if len(self._young) >= self._generation_max:
            self._old = self._young
            self._young = {}
        self._young[key] = value

    def discard_all(self, keys: Iterable[_Key]) -> None:
        """Remove the values of some keys, where there are any."""
        young, old = self._young, self._old
        for key in keys:
            young.pop(key, None)
            old.pop(key, None)
