"""A cache of bounded size for recently used values.

Get, put and discard cost O(1): there are two generations, and the older one is dropped when the younger
one is full.
"""

from __future__ import annotations

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

    def discard(self, key: _Key) -> None:
        """Remove the value of a key, if there is one."""
        self._young.pop(key, None)
        self._old.pop(key, None)
