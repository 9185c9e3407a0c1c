"""A moving index and, beside it, what it should say, from the definition."""

from __future__ import annotations

import dataclasses

import numpy as np

from index.batches import Matches
from tests.index.boxes import AreaObject, Box, BoxDice, Clause, area_batch, boxes_of
from tests.index.brute import ids, keyword_lists

FOR_EVER = 1 << 40


def rows_of(found: Matches) -> list[list[int]]:
    """One sorted list for each row, duplicates included."""
    return [sorted(found.row(i).tolist()) for i in range(len(found.offsets) - 1)]


class Movers:
    """Every call goes to the index; what it returns is held against sets."""

    def __init__(self, index) -> None:
        self.index = index
        self.clauses: dict[int, Clause] = {}
        self.objects: dict[int, tuple[AreaObject, int]] = {}
        self.now_ms = 0
        self.change_count = 0
        """How many changes and matches were told."""
        index.pass_time(0)

    def live(self) -> list[AreaObject]:
        return [one for one, expiry_ms in self.objects.values() if expiry_ms > self.now_ms]

    def matched_by(self, clause: Clause) -> set[int]:
        return {one.object_id for one in self.live() if clause.is_matched_by(one)}

    def _lying_within(self, box: Box) -> set[int]:
        return {
            one.object_id
            for one in self.live()
            if box.x1_m <= one.box.x1_m
            and box.y1_m <= one.box.y1_m
            and one.box.x2_m <= box.x2_m
            and one.box.y2_m <= box.y2_m
        }

    def matching(self, one: AreaObject) -> list[int]:
        return sorted(clause.clause_id for clause in self.clauses.values() if clause.is_matched_by(one))

    def insert(self, clauses: list[Clause]) -> None:
        found = self.index.insert(
            ids(one.clause_id for one in clauses),
            boxes_of([one.box for one in clauses]),
            keyword_lists([one.required for one in clauses]),
        )
        self._expect(rows_of(found), [sorted(self.matched_by(one)) for one in clauses])
        self.clauses.update({one.clause_id: one for one in clauses})

    def move(self, boxes: dict[int, Box], same: list[Box] | None = None) -> None:
        """Move clauses; what lies within the boxes of `same` does not change, all else may."""
        inner = None if same is None else boxes_of(same)
        moved = self.index.move(ids(boxes), boxes_of(list(boxes.values())), inner)
        entered, left = [], []
        for row, (key, box) in enumerate(boxes.items()):
            old, new = self.clauses[key], dataclasses.replace(self.clauses[key], box=box)
            before, after = self.matched_by(old), self.matched_by(new)
            unchanged = before if same is None else before & self._lying_within(same[row])
            entered.append(sorted(after - unchanged))
            left.append(sorted(before - after))
            self.clauses[key] = new
        self._expect(rows_of(moved.entered), entered)
        self._expect(rows_of(moved.left), left)

    def remove(self, keys: list[int]) -> None:
        self.index.remove(ids(keys))
        for key in keys:
            del self.clauses[key]

    def publish(self, objects: list[AreaObject], expiry_ms: list[int]) -> None:
        found = self.index.publish(area_batch(objects), ids(expiry_ms))
        is_alive = [one > self.now_ms for one in expiry_ms]
        self._expect(
            rows_of(found),
            [self.matching(one) if alive else [] for one, alive in zip(objects, is_alive, strict=True)],
        )
        self.objects.update(
            {one.object_id: (one, end) for one, end in zip(objects, expiry_ms, strict=True)}
        )

    def match(self, objects: list[AreaObject]) -> None:
        self._expect(
            rows_of(self.index.match(area_batch(objects))), [self.matching(one) for one in objects]
        )

    def retract(self, keys: list[int]) -> None:
        found = self.index.retract(ids(keys))
        self._expect(rows_of(found), [self.matching(self.objects.pop(key)[0]) for key in keys])

    def pass_time(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.index.pass_time(now_ms)
        self.objects = {key: one for key, one in self.objects.items() if one[1] > now_ms}

    def verify(self) -> None:
        """Counts and invariants."""
        assert len(self.index) == len(self.clauses)
        assert self.index.object_count == len(self.live())
        self.index.check()

    def _expect(self, found: list[list[int]], expected: list[list[int]]) -> None:
        assert found == expected
        self.change_count += sum(map(len, found))


class MoverDice(BoxDice):
    """Random clauses that move."""

    def moved(self, box: Box) -> Box:
        """A little way, or a large jump, or another size."""
        if self.random.random() < 0.4:
            return self.box()
        dx, dy, more = (float(self.random.choice((-2, -1, 0, 0, 1, 2))) for _ in range(3))
        x2_m, y2_m = box.x2_m + dx + max(more, 0.0), box.y2_m + dy
        return Box(box.x1_m + dx, box.y1_m + dy, max(box.x1_m + dx, x2_m), y2_m)

    def core(self, one: Box, other: Box) -> Box:
        """A part of what two boxes share, often nothing."""
        by_m = float(self.random.choice((0, 0, 1, 2)))
        return Box(
            max(one.x1_m, other.x1_m) + by_m,
            max(one.y1_m, other.y1_m) + by_m,
            min(one.x2_m, other.x2_m) - by_m,
            min(one.y2_m, other.y2_m) - by_m,
        )


def step(dice: MoverDice, world: Movers, number: int, *, most: int = 6, words: int | None = None) -> None:
    """One random operation."""
    kind = dice.random.choice(
        ("insert", "move", "move", "move", "remove", "publish", "publish", "match", "retract", "time")
    )
    some = dice.random.sample(
        sorted(world.clauses), min(len(world.clauses), dice.random.randint(0, most))
    )
    if kind == "insert":
        count = dice.random.choice((0, 1, 2, most, 5 * most))
        world.insert([dice.clause(1_000 * number + i, words) for i in range(count)])
    elif kind == "move":
        boxes = {key: dice.moved(world.clauses[key].box) for key in some}
        is_core = dice.random.random() < 0.5
        world.move(
            boxes,
            [dice.core(box, world.clauses[key].box) for key, box in boxes.items()] if is_core else None,
        )
    elif kind == "remove":
        world.remove(some)
    elif kind == "publish":
        alive = {one.object_id for one in world.live()}
        free = [key for key in range(200) if key not in alive]
        keys = dice.random.sample(free, min(len(free), dice.random.choice((0, 1, 3, 2 * most))))
        ends = [world.now_ms + dice.random.choice((0, 1, 5, 20, FOR_EVER)) for _ in keys]
        world.publish([dice.area_object(key) for key in keys], ends)
    elif kind == "match":
        world.match([dice.area_object(key) for key in range(dice.random.choice((0, 1, most)))])
    elif kind == "retract":
        alive = {one.object_id for one in world.live()}
        world.retract(dice.random.sample(sorted(alive), min(len(alive), most // 2)))
    else:
        world.pass_time(world.now_ms + dice.random.choice((0, 1, 2, 10)))


def crowd_of_objects(seed: int, count: int, vocabulary: int = 9) -> list[AreaObject]:
    chance = np.random.default_rng(seed)
    found = []
    for key in range(count):
        x_m, y_m = chance.uniform(-8, 8, 2).tolist()
        keywords = frozenset(chance.choice(vocabulary, size=min(5, vocabulary), replace=False).tolist())
        found.append(AreaObject(key, x_m, y_m, Box(x_m, y_m, x_m, y_m), keywords))
    return found
