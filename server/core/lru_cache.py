"""What was used lately, kept ready, and no more than so much of it.

Get, put and discard O(1): two generations, of which the older is dropped when the younger is full.
"""

from __future__ import annotations

from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """At most twice `generation_max` values, those used last among them.

    Parameters
    ----------
    generation_max
        When a generation is full.
    """

    def __init__(self, generation_max: int) -> None:
        self._generation_max = generation_max
        self._young: dict[_Key, _Value] = {}
        self._old: dict[_Key, _Value] = {}

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def get(self, key: _Key) -> _Value | None:
        """Return what is kept for a key."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value."""
        if len(self._young) >= self._generation_max:
            self._old = self._young
            self._young = {}
        self._young[key] = value

    def discard(self, key: _Key) -> None:
        """Forget what is kept for a key, if anything is."""
        self._young.pop(key, None)
        self._old.pop(key, None)
