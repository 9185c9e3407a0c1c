"""The contract of matchers: what holds of every kind of subscription. See `tests.engine.kinds`."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
import pytest

from engine import Bounds, Engine, EngineOptions, Positions
from engine.contracts import BOOLEAN, CHANGE_DTYPE, handle_of, kind_of, kinds_of
from engine.engine import MATCHERS
from index.catalogue import (
    CLAUSE_INDEXES,
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
)
from index.published.ap_plus_tree import ApPlusTree
from index.square import Square
from tests.engine.kinds import KINDS, MATCHES_MAX, AreaDice, placed_batch
from tests.index.brute import SIDE, ids
from tests.support.amounts import examples

OPTIONS = {
    "naive": EngineOptions(buffer_extra=2, matches_max=MATCHES_MAX),
    "as served": EngineOptions(
        None,
        OBJECT_INDEXES[DEFAULT_OBJECT_INDEX],
        lambda: SUBSCRIPTION_INDEXES[DEFAULT_SUBSCRIPTION_INDEX](Square(0.0, 0.0, float(SIDE))),
        margin_extra_max=12,
        clause_index=lambda: CLAUSE_INDEXES[DEFAULT_CLAUSE_INDEX](Square(0.0, 0.0, float(SIDE))),
        matches_max=MATCHES_MAX,
    ),
    "moving index": EngineOptions(
        0,
        matches_max=MATCHES_MAX,
        moving_index=lambda: ApPlusTree(Square(0.0, 0.0, float(SIDE)), leaf_max=4, fanout=9),
    ),
}
SETS = [(kind,) for kind in MATCHERS] + [tuple(MATCHERS)] * (len(MATCHERS) > 1)
"""Each kind alone, and all of them together."""
CASES = [
    (kinds, name) for kinds in SETS for name in OPTIONS if name != "moving index" or BOOLEAN in kinds
]


def test_every_kind_is_tested():
    assert set(KINDS) == set(MATCHERS)


def floats(values):
    return np.array(list(values), dtype=np.float64)


def assert_same(one, other):
    if isinstance(one, tuple):
        for mine, yours in zip(one, other, strict=True):
            assert_same(mine, yours)
    else:
        np.testing.assert_array_equal(one, other)


class World:
    """Two engines to which the same happens, and what their changes say that devices hold.

    One of them retrieves before it evaluates, in another thread while it evaluates others. Both must say
    the same.
    """

    def __init__(self, kinds, options, seed):
        self.dice = AreaDice(seed)
        self.chance = self.dice.random
        matchers = {kind: MATCHERS[kind] for kind in kinds}
        self.kinds = kinds
        self.engine, self.ahead = Engine(options, matchers), Engine(options, matchers)
        self.queries = {}  # by handle
        self.held = {}  # by handle, of those that are awake: shares by object id
        self.alive = {}  # objects by id
        self.expiry_ms = {}
        self.next_object = self.next_number = 1
        self.change_count = 0
        self.seen_skips = self.seen_too_many = 0

    def both(self, method, *arguments):
        """Let both engines do something; return what they say."""
        found = getattr(self.engine, method)(*arguments)
        assert_same(found, getattr(self.ahead, method)(*arguments))
        return found

    # -- what happens ----------------------------------------------------------------------------

    def subscribe(self, count):
        for kind in self.kinds:
            query = [KINDS[kind].draw(self.dice) for _ in range(count)]
            new = [handle_of(kind, self.next_number + i) for i in range(count)]
            self.next_number += count
            for engine in (self.engine, self.ahead):
                engine.matchers[kind].subscribe(ids(new), KINDS[kind].specs(query))
            self.queries.update(zip(new, query, strict=True))

    def unsubscribe(self, handles):
        assert self.both("unsubscribe", ids(handles)) is None
        for handle in handles:
            del self.queries[handle]
            self.held.pop(handle, None)

    def park(self, handles):
        assert self.both("park", ids(handles)) is None
        for handle in handles:
            self.held.pop(handle, None)

    def positions(self, handles):
        def known(values):
            return floats(self.chance.choice(values) for _ in handles)

        exact = [KINDS[kind_of(one)].needs_exact_position(self.queries[one]) for one in handles]
        return Positions(
            ids(handles),
            floats(self.dice.coordinate() for _ in handles),
            floats(self.dice.coordinate() for _ in handles),
            known((math.nan, 0.0, 2.0)),
            known((math.nan, 0.0, 3.0)),
            np.where(exact, 0.0, known((0.0, 0.0, 0.5, 4.0))),
        )

    def evaluate(self, handles):
        """Evaluate subscriptions somewhere: some of them are retrieved while the others are evaluated."""
        where = self.positions(list(handles))
        others = self.bounds(set(self.held) - set(handles))
        is_late = np.array([self.chance.random() < 0.5 for _ in handles], dtype=np.bool_)
        first, second = where.part(~is_late), where.part(is_late)
        changes = self.engine.evaluate(first), self.engine.evaluate(second)
        with ThreadPoolExecutor(1) as thread:
            retrieved = thread.submit(self.ahead.retrieve, second)
            assert_same(self.ahead.evaluate(first), changes[0])
        assert_same(self.ahead.evaluate_parts(retrieved.result()).changes, changes[1])
        for part, found in zip((first, second), changes, strict=True):
            assert set(found["handle"].tolist()) <= set(part.handles.tolist())
            for handle in part.handles.tolist():
                self.held.setdefault(handle, {})
            self.note(found)
        assert not self.engine.are_pending(where.handles).any()
        assert self.bounds(others) == others
        self.require_results(where)

    def require_results(self, where):
        """Devices that have just been evaluated hold what a search finds there."""
        columns = (*where[:3], where.margin_m, self.engine.bounds(where.handles).bound_id)
        for handle, *place, margin_m, bound_id in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            assert self.search(handle, *place) == self.result(handle, *place)
            kind = KINDS[kind_of(handle)]
            held = kind.grown(self.queries[handle], bound_id, margin_m)
            assert set(kind.result(held, *place, self.alive.values())) <= set(self.held[handle])

    def result(self, handle, x_m, y_m):
        return KINDS[kind_of(handle)].result(self.queries[handle], x_m, y_m, self.alive.values())

    def search(self, handle, x_m, y_m):
        specs = KINDS[kind_of(handle)].specs([self.queries[handle]])
        ranking = self.engine.matcher_of(handle).search(specs, floats([x_m]), floats([y_m]))
        assert ranking.offsets.tolist() == [0, len(ranking.ids)]
        return ranking.ids.tolist()

    def retrieve_in_vain(self, handles):
        """What is looked up and never used changes nothing, then or later."""
        before = self.bounds(self.held)
        self.ahead.retrieve(self.positions(handles))
        assert self.bounds(self.held) == before

    def publish(self, count):
        objects = [self.dice.placed(self.next_object + i) for i in range(count)]
        self.next_object += count
        now_ms = self.engine.now_ms
        expiry_ms = ids(now_ms + self.chance.choice((1, 5, 30, 200)) for _ in objects)
        self.alive.update({one.object_id: one for one in objects})
        self.expiry_ms.update(zip([one.object_id for one in objects], expiry_ms.tolist(), strict=True))
        before, waiting = self.bounds(self.held), self.waiting()
        batch, rings = placed_batch(objects)
        published = self.both("publish", batch, expiry_ms, rings)
        self.note(published.changes)
        started = published.pending.tolist()
        assert len(started) == len(set(started))
        assert set(started) == self.waiting() - waiting
        assert waiting <= self.waiting() <= set(self.held)
        rebound = published.rebound.tolist()
        changed = {handle for handle, bound in self.bounds(self.held).items() if bound != before[handle]}
        assert len(rebound) == len(set(rebound))
        assert set(rebound) == changed

    def remove(self, numbers):
        before = self.bounds(self.held)
        changes = self.both("remove", ids(numbers))
        dropped = changes["object_id"][changes["is_drop"] == 1]
        assert set(dropped.tolist()) <= set(numbers)
        self.note(changes)
        for number in numbers:
            del self.alive[number], self.expiry_ms[number]
        sent = set(changes["handle"].tolist())
        assert {handle: bound for handle, bound in before.items() if handle not in sent} == {
            handle: bound for handle, bound in self.bounds(self.held).items() if handle not in sent
        }

    def settle(self, everything):
        """What is due, or all that can be, is brought up to date."""
        dirty, before = self.dirty(), self.bounds(self.held)
        settled = [engine.settle(everything=everything) for engine in (self.engine, self.ahead)]
        assert_same(*settled)
        self.note(settled[0].changes)
        assert set(settled[0].changes["handle"].tolist()) <= dirty
        changed = {handle for handle, bound in self.bounds(self.held).items() if bound != before[handle]}
        assert changed == set(settled[0].rebound.tolist())
        assert self.dirty() <= dirty
        if everything:
            assert not self.dirty()
            self.require_nearest()

    def dirty(self):
        """Return the subscriptions with too many matches that are to be settled."""
        if BOOLEAN not in self.kinds:
            return set()
        rows = self.engine.matchers[BOOLEAN].subscriptions.rows
        return set(rows["id"][rows["is_dirty"] == 1].tolist())

    def require_nearest(self):
        """Of what matches too often those nearest to the middle are held, but for what has expired."""
        for handle, (x_m, y_m, _, too_many) in self.bounds(self.held).items():
            if kind_of(handle) == BOOLEAN and too_many:
                self.seen_too_many += 1
                row = self.engine.matchers[BOOLEAN].subscriptions.rows[
                    self.engine.matchers[BOOLEAN].subscriptions.slots(ids([handle]))[0]
                ]
                query = KINDS[BOOLEAN].grown(self.queries[handle], 1, float(row["margin_m"]))
                expected = KINDS[BOOLEAN].result(query, x_m, y_m, self.alive.values())
                held = set(self.held[handle])
                assert held == set(expected[: len(held)])

    def advance(self, passed_ms):
        before = self.bounds(self.held)
        now_ms = self.engine.now_ms + passed_ms
        message = [], []
        engines = zip((self.engine, self.ahead), message, strict=True)
        settle_ms = self.engine.next_settle_ms()
        found = []
        for engine, changes in engines:
            if engine is self.ahead and engine.skip_to(now_ms):
                self.seen_skips += 1
                assert settle_ms is None or now_ms < settle_ms
                changes.append(np.empty(0, dtype=CHANGE_DTYPE))
                found.append([])
            else:
                found.append(engine.advance(now_ms, on_changes=changes.append).tolist())
        assert found[0] == found[1]
        assert_same(*(np.concatenate(changes) for changes in message))
        due = found[0]
        assert sorted(due) == sorted(one for one, end in self.expiry_ms.items() if end <= now_ms)
        for number in due:
            del self.alive[number], self.expiry_ms[number]
            for held in self.held.values():
                held.pop(number, None)
        for changes in message[0]:
            self.note(changes)
        assert self.bounds(self.held) == before

    # -- what is said ----------------------------------------------------------------------------

    def note(self, changes):
        """Apply changes as devices would: those who are parked or gone are not among them."""
        assert changes.dtype == CHANGE_DTYPE
        groups = [handle for handle, _ in groupby(changes["handle"].tolist())]
        assert len(groups) == len(set(groups)), "changes are grouped by subscription"
        for handle, number, r_m, is_drop in changes.tolist():
            held = self.held[handle]
            if is_drop:
                del held[number]
            else:
                assert number in self.alive
                assert number not in held
                held[number] = r_m
        self.change_count += len(changes)

    def bounds(self, handles):
        handles = sorted(handles)
        found = self.both("bounds", ids(handles))
        assert isinstance(found, Bounds)
        rows = zip(*(column.tolist() for column in found), strict=True)
        return dict(zip(handles, rows, strict=True))

    def waiting(self):
        handles = sorted(self.queries)
        pending = self.both("are_pending", ids(handles)).tolist()
        return {handle for handle, one in zip(handles, pending, strict=True) if one}

    def compare(self):
        """Require that the engines hold what their changes have said."""
        handles = sorted(self.queries)
        awake = self.both("are_awake", ids(handles)).tolist()
        assert {handle for handle, one in zip(handles, awake, strict=True) if one} == set(self.held)
        for handle in handles:
            numbers, shares = self.both("held", handle)
            assert len(numbers) == len(set(numbers.tolist()))
            held = dict(zip(numbers.tolist(), shares.tolist(), strict=True))
            assert held == self.held.get(handle, {})
        for engine in (self.engine, self.ahead):
            assert engine.subscription_count == len(handles)
            assert len(engine.objects) == len(self.alive)

    def check(self):
        self.engine.check()
        self.ahead.check()

    def some(self, things, most=6):
        things = sorted(things)
        return self.chance.sample(things, min(len(things), self.chance.randint(0, most)))


STEPS = {
    "subscribe": (2, lambda world: world.subscribe(world.chance.choice((0, 1, 4)))),
    "evaluate": (6, lambda world: world.evaluate(world.some(world.queries))),
    "publish": (5, lambda world: world.publish(world.chance.choice((0, 1, 1, 6, 20)))),
    "remove": (2, lambda world: world.remove(world.some(world.alive))),
    "advance": (2, lambda world: world.advance(world.chance.choice((0, 1, 3, 20)))),
    "park": (1, lambda world: world.park(world.some(world.queries, 4))),
    "unsubscribe": (1, lambda world: world.unsubscribe(world.some(world.queries, 3))),
    "settle": (1, lambda world: world.settle(world.chance.random() < 0.5)),
    "retrieve in vain": (2, lambda world: world.retrieve_in_vain(world.some(world.queries))),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture
def kinds(case):
    return case[0]


@pytest.fixture
def options(case):
    return OPTIONS[case[1]]


@pytest.mark.parametrize("seed", range(examples(2)))
def test_any_mix_of_operations(kinds, options, seed):
    world = World(kinds, options, seed)
    world.subscribe(5)
    names, weights = list(STEPS), [weight for weight, _ in STEPS.values()]
    for step in range(80):
        (name,) = world.chance.choices(names, weights)
        STEPS[name][1](world)
        world.compare()
        if step % 5 == 0:
            world.check()
    world.check()
    assert world.change_count > 40, "a run with few changes proves nothing"


def test_time_passes_with_nothing_to_do_while_nothing_is_due(kinds, options):
    world = World(kinds, options, 3)
    world.subscribe(6)
    world.publish(20)
    world.evaluate(world.queries)
    for passed_ms in [1, 1, 2, 1, 1, 10, 1, 1, 15, 1]:
        world.advance(passed_ms)
        world.compare()
    assert world.seen_skips or len(world.engine.objects.windows)
    world.check()


def test_empty_batches_do_nothing(kinds, options):
    world = World(kinds, options, 1)
    world.subscribe(0)
    world.subscribe(3)
    world.evaluate(world.queries)
    for happening in (
        world.evaluate,
        world.park,
        world.unsubscribe,
        world.remove,
        world.retrieve_in_vain,
    ):
        happening([])
    world.publish(0)
    world.advance(0)
    for kind in kinds:
        matcher = world.engine.matchers[kind]
        assert len(matcher.keyword_lists(ids([]))) == 0
        found = matcher.search(KINDS[kind].specs([]), floats([]), floats([]))
        assert found.offsets.tolist() == [0]
        assert [len(column) for column in matcher.bounds(ids([]))] == [0, 0, 0, 0]
    world.compare()
    world.check()


def test_parking_twice_or_before_the_first_evaluation_is_nothing(kinds, options):
    world = World(kinds, options, 2)
    world.publish(20)
    world.subscribe(6)
    handles = sorted(world.queries)
    world.park(handles)
    world.evaluate(handles)
    for _ in range(2):
        world.park(handles)
        world.compare()
    world.evaluate(handles)
    world.compare()
    world.check()


def test_an_unsubscribed_device_gets_no_changes(kinds, options):
    """Awake, parked and waiting for a position; then all that could concern them happens."""
    world = World(kinds, options, 3)
    world.publish(30)
    world.subscribe(20)
    handles = sorted(world.queries)
    world.evaluate(handles)
    world.publish(20)
    world.park(handles[::7])
    gone, kept = handles[::2], handles[1::2]
    world.unsubscribe(gone)
    world.publish(40)  # `World.note` knows nobody of those that are gone
    world.remove(world.some(world.alive, 30))
    world.advance(5)
    world.evaluate(kept)
    assert all(len(world.engine.matchers[kind]) == 10 for kind in kinds)
    world.compare()
    world.check()


def test_keywords_are_those_of_the_request(kinds, options):
    world = World(kinds, options, 4)
    world.subscribe(12)
    for kind in kinds:
        handles = [handle for handle in world.queries if kind_of(handle) == kind][::-1]
        lists = world.engine.matchers[kind].keyword_lists(ids(handles))
        expected = [sorted(KINDS[kind].keywords(world.queries[handle])) for handle in handles]
        assert [lists.row(i).tolist() for i in range(len(lists))] == expected


def test_a_due_subscription_stays_until_it_was_named(kinds, options):
    """Whoever is told what is due may still look at it, and at who holds it."""
    world = World(kinds, options, 5)
    world.publish(30)
    world.subscribe(4)
    world.evaluate(world.queries)
    last_ms = max(world.expiry_ms.values())
    held, seen = {handle: set(one) for handle, one in world.held.items()}, []
    assert any(held.values())

    def look(due):
        seen.extend(due.tolist())
        assert world.engine.objects.table.ids.present(due).all()
        for handle, numbers in held.items():
            assert set(world.engine.held(handle)[0].tolist()) == numbers

    world.engine.advance(last_ms, look)
    assert not len(world.engine.objects)
    assert sorted(seen) == sorted(world.alive)
    for handle in held:
        assert len(world.engine.held(handle)[0]) == 0
    world.engine.check()


def test_growth_and_shrinkage(kinds, options):
    """Far beyond the first capacity and back: what is given back is used again."""
    world = World(kinds, options, 6)
    world.publish(60)
    sizes = []
    for _ in range(3):
        world.subscribe(400)
        world.evaluate(world.queries)
        sizes.append(world.engine.memory_bytes())
        world.publish(5)
        handles = sorted(world.queries)
        world.unsubscribe(world.chance.sample(handles, len(handles) - 10))
        world.compare()
    world.check()
    assert sizes[2] <= 1.5 * sizes[0]


@pytest.mark.parametrize("number", [0, 1, 2**48 - 1])
@pytest.mark.parametrize("kind", MATCHERS)
def test_a_handle_has_its_kind(kind, number):
    handle = handle_of(kind, number)
    assert kind_of(handle) == kind
    assert kinds_of(ids([handle])).tolist() == [kind]
    assert 0 <= handle < 2**63


@pytest.mark.parametrize("kind", MATCHERS)
def test_the_largest_handle_is_one_like_others(kind, options):
    world = World((kind,), options, 7)
    world.next_number = 2**48 - 2
    world.publish(20)
    world.subscribe(2)
    world.evaluate(world.queries)
    world.publish(20)
    world.evaluate(world.queries)
    world.compare()
    world.check()
