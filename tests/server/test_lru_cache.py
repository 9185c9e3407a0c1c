"""What is kept ready is bounded, and what was used last is there."""

from __future__ import annotations

from identity.lru_cache import LruCache


def test_the_last_used_items_are_kept_and_the_rest_is_bounded():
    recent = LruCache(4)
    for number in range(100):
        recent.put(number, str(number))
        assert recent.get(0) == "0"  # used all the time
        assert recent.get(number) == str(number)
        assert len(recent) <= 8
    assert recent.get(50) is None
    recent.discard_all([0, 50])
    assert recent.get(0) is None
