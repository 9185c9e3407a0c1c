"""The object table: what is asked for is what was put there, however slots and numbers are used again."""

from __future__ import annotations

import random

import pytest

from safe_region.earth.frame import Area, Frame
from server.core import object_table
from server.core.matching_service import MatchingService
from server.model import LiveObject

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
WORDS = ("sushi", "tea", "tofu", "udon", "natto", "zoni")


def an_object(object_id, chance, now_ms):
    lon, lat = chance.uniform(14.0, 15.0), chance.uniform(35.0, 36.0)
    return LiveObject(
        object_id,
        lon,
        lat,
        FRAME.project(lon, lat),
        tuple(sorted(chance.sample(WORDS, chance.randint(1, 4)))),
        now_ms,
        now_ms + chance.choice((5, 20, 1_000)),
        chance.choice((b"", b"payload")),
        chance.choice(("", f"key-{object_id}")),
    )


@pytest.mark.parametrize("seed", range(10))
def test_it_is_a_mapping_of_live_objects(seed, monkeypatch):
    monkeypatch.setattr(object_table, "_RECENT_MAX", 3)
    chance = random.Random(seed)
    matching = MatchingService(FRAME)
    alive = {}
    next_id = 1
    for _ in range(120):
        kind = chance.choice(("publish", "publish", "retract", "replace", "advance"))
        some = chance.sample(sorted(alive), min(len(alive), chance.randint(1, 3)))
        if kind in {"publish", "replace"}:
            new = [an_object(next_id + i, chance, matching.now_ms) for i in range(chance.randint(1, 4))]
            next_id += len(new)
            replaced = some if kind == "replace" else []
            matching.publish(new, replaced)
            alive = {key: item for key, item in alive.items() if key not in replaced}
            alive |= {item.object_id: item for item in new}
        elif kind == "retract":
            matching.retract(some)
            for object_id in some:
                del alive[object_id]
        else:
            now_ms = matching.now_ms + chance.choice((0, 3, 30))
            due = {key: item for key, item in alive.items() if item.expiry_ms <= now_ms}
            gone, _ = matching.advance(now_ms)
            assert {one.object_id: one.key for one in gone} == {
                key: item.key for key, item in due.items()
            }
            for object_id in due:
                del alive[object_id]
        assert dict(matching.objects) == alive
        assert len(matching.objects) == len(alive)
    assert next_id not in matching.objects
    with pytest.raises(KeyError):
        matching.objects[next_id]
    matching.retract(sorted(alive))
    assert not matching.objects
    assert matching.keyword_count == 0


def test_an_object_just_put_is_not_built_again():
    matching = MatchingService(FRAME)
    item = an_object(1, random.Random(1), 0)
    matching.publish([item])
    assert matching.objects[1] is item
