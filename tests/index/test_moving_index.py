"""The contract of moving indexes. The catalogue's are tested, and more of FACTORIES."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from index.catalogue import MOVING_INDEXES
from index.naive import NaiveClauseIndex, NaiveObjectIndex
from index.paired import PairedIndex
from index.published.ap_plus_tree import ApPlusTree
from index.published.ap_tree import ApTree
from index.published.grid_files import KkClauses, KkObjects, SsClauses, SsObjects
from index.published.inverted_quad import InvertedQuad
from index.published.iq_tree import IqTreeObjectIndex
from index.published.iqf import IqfObjectIndex
from index.published.quad_files import IqObjects, RqObjects
from index.published.quad_inverted import QuadInverted
from tests.index.boxes import AreaObject, Box, Clause, area_batch, boxes_of, point
from tests.index.brute import ids, keyword_lists
from tests.index.movers import FOR_EVER, MoverDice, Movers, crowd_of_objects, rows_of, step
from tests.index.published import marked
from tests.support.amounts import examples

FACTORIES = {
    **MOVING_INDEXES,
    "naive pair": lambda: PairedIndex(NaiveClauseIndex(), NaiveObjectIndex()),
    "ap-plus-k": lambda: PairedIndex(ApTree(leaf_max=4, fanout=9, follows_motion=True), IqfObjectIndex()),
    "ap-plus-s": lambda: PairedIndex(
        ApTree(leaf_max=4, fanout=9, follows_motion=True), IqTreeObjectIndex()
    ),
    "ap-plus-tree, rebuilding": lambda: ApPlusTree(
        fanout=4, leaf_max=3, drift_max=1e-6, change_share=0.05
    ),
    "ap-plus-tree, few copies": lambda: ApPlusTree(fanout=9, leaf_max=4, copies_max=3),
    "ap-plus-tree, many parts": lambda: ApPlusTree(leaf_max=4, copies_max=1_000),
    "rq-tree and iq-tree": lambda: PairedIndex(InvertedQuad(), IqTreeObjectIndex()),
    "iq-plus-tree": lambda: PairedIndex(QuadInverted(lifetime=99.0), IqObjects(long=4)),
    "rq-plus-tree": lambda: PairedIndex(InvertedQuad(lifetime=99.0), RqObjects(long=2)),
    "ss-index": lambda: PairedIndex(SsClauses(side=4), SsObjects(side=5)),
    "kk-index": lambda: PairedIndex(KkClauses(side=4), KkObjects(side=5)),
}


@pytest.fixture(params=marked(FACTORIES))
def index(request):
    return FACTORIES[request.param]()


@pytest.mark.parametrize("seed", range(examples(2)))
def test_any_mix_of_operations(index, seed):
    """Every change is told once: `Movers` holds each row against sets."""
    dice, world = MoverDice(seed), Movers(index)
    for number in range(1, 80):
        step(dice, world, number)
        world.verify()
    assert world.change_count > 0, "a run without a match proves nothing"


@pytest.mark.parametrize("seed", range(examples(1)))
def test_many_of_everything(index, seed):
    """So many that structures split, degrade and rebuild."""
    dice, world = MoverDice(100 + seed), Movers(index)
    world.publish(crowd_of_objects(seed, 150), [FOR_EVER] * 150)
    for number in range(1, 60):
        step(dice, world, number, most=40)
        if number % 10 == 0:
            world.verify()
    world.verify()
    assert world.change_count > 300


@pytest.mark.parametrize("seed", range(examples(1)))
def test_clauses_wander_and_words_change(index, seed):
    """Drift: structures that follow rebuild themselves while objects lie in them."""
    dice, world = MoverDice(200 + seed), Movers(index)
    for number in range(1, 25):
        east_m = float(number)
        new = []
        for i in range(40):
            one = dice.clause(1_000 * number + i, 6)
            words = frozenset(word + number for word in one.required)
            new.append(dataclasses.replace(one, required=words))
        world.insert(new)
        objects = []
        for key in range(20):
            one = dice.area_object(100 * number + key)
            words = frozenset(word + number for word in dice.words(6, 9))
            objects.append(dataclasses.replace(one, keywords=words))
        world.publish(objects, [world.now_ms + dice.random.choice((2, 4, 8)) for _ in objects])
        some = dice.random.sample(sorted(world.clauses), 30)
        boxes = {key: world.clauses[key].box for key in some}
        world.move(
            {key: Box(b.x1_m + east_m, b.y1_m, b.x2_m + east_m, b.y2_m) for key, b in boxes.items()}
        )
        world.remove(sorted(world.clauses)[: max(0, len(world.clauses) - 300)])
        world.pass_time(world.now_ms + 1)
        if number % 6 == 0:
            world.verify()
    world.verify()
    assert world.change_count > 0


def test_words_never_seen_before(index):
    """Clauses that come after the objects, with keywords that no clause had."""
    world = Movers(index)
    box = Box(-1.0, -1.0, 1.0, 1.0)
    world.publish([point(1, 0.0, 0.0, {5, 1_000}), point(2, 0.5, 0.5, {7, 2_000, 3_000})], [FOR_EVER] * 2)
    world.insert([Clause(1, box, frozenset({1_000}))])
    world.insert([Clause(2, box, frozenset({5, 1_000})), Clause(3, box, frozenset({2_000, 3_000}))])
    world.insert([Clause(4, box, frozenset({4_000}))])
    world.verify()
    assert world.change_count == 3


@pytest.mark.parametrize("count", [3, 60, 300])
def test_words_never_seen_before_in_a_crowd(index, count):
    """However the clauses that are there are parted."""
    dice, world = MoverDice(7), Movers(index)
    world.insert([dice.clause(key) for key in range(count)])
    objects = [
        dataclasses.replace(one, keywords=one.keywords | {100 + one.object_id % 17, 200})
        for one in crowd_of_objects(3, 60)
    ]
    world.publish(objects, [FOR_EVER] * 60)
    everywhere = Box(-40.0, -40.0, 40.0, 40.0)
    sent = world.change_count
    for i in range(17):
        box = dice.box()
        world.insert([Clause(5_000 + i, box, frozenset({100 + i}))])
        world.insert([Clause(6_000 + i, everywhere, frozenset({i % 9, 100 + i}))])
        world.insert([Clause(7_000 + i, everywhere, frozenset({i % 9, 100 + i, 200}))])
        if count < 100:
            world.verify()
    world.insert([Clause(8_000, everywhere, frozenset({200}))])
    assert world.change_count >= sent + 60
    world.verify()


def test_ranges_that_start_and_cease_to_cover_everything(index):
    dice, world = MoverDice(8), Movers(index)
    world.insert([dice.clause(key, 4) for key in range(300)])
    world.publish(crowd_of_objects(5, 100, 4), [FOR_EVER] * 100)
    small, large = Box(0.0, 0.0, 1.0, 1.0), Box(-40.0, -40.0, 40.0, 40.0)
    for number in range(6):
        keys = dice.random.sample(range(300), 20)
        world.move(dict.fromkeys(keys, large if number % 2 == 0 else small))
        world.move({key: dice.box() for key in keys[:5]})
        world.verify()
    assert world.change_count > 300


def test_a_range_jumps_across_the_border_and_back(index):
    dice, world = MoverDice(9), Movers(index)
    world.insert([dice.clause(key, 4) for key in range(200)])
    objects = [*crowd_of_objects(6, 50, 4), point(1_000, 500.0, -300.0, {0, 1, 2, 3})]
    world.publish(objects, [FOR_EVER] * 51)
    home = {key: world.clauses[key].box for key in range(0, 200, 3)}
    far = {key: Box(499.0 + key % 2, -301.0, 501.0, -299.0) for key in home}
    world.move(far)
    world.move(home)
    world.move(far)
    world.verify()
    assert world.change_count > 3 * len(home)


def test_a_move_without_effect_has_no_changes(index):
    world = Movers(index)
    world.insert([Clause(1, Box(0.0, 0.0, 2.0, 2.0), frozenset({1}))])
    world.publish([point(1, 1.0, 1.0, {1}), point(2, 2.0, 2.0, {1, 2})], [FOR_EVER] * 2)
    sent = world.change_count
    world.move({1: Box(0.0, 0.0, 2.0, 2.0)})
    world.move({1: Box(1.0, 1.0, 2.0, 2.0)})
    assert world.change_count == sent
    world.move({1: Box(1.0, 1.0, float(np.nextafter(2.0, 0.0)), 2.0)})
    assert world.change_count == sent + 1, "edges belong to a range"


def test_an_area_is_reported_once(index):
    """However many parts of the plane it and the range share."""
    dice, world = MoverDice(10), Movers(index)
    world.insert([dice.clause(key, 4) for key in range(2, 400)])
    areas = [
        AreaObject(1, 0.0, 0.0, Box(-20.0, -20.0, 20.0, 20.0), frozenset({0, 1, 2, 3})),
        AreaObject(2, 3.0, 3.0, Box(-2.0, 3.0, 5.0, 3.0), frozenset({0, 1, 2, 3})),
        AreaObject(3, -7.0, 0.0, Box(-30.0, -1.0, -6.0, 9.0), frozenset({0, 1, 2, 3})),
    ]
    world.publish(areas, [FOR_EVER] * 3)
    world.insert([Clause(1, Box(-30.0, -30.0, 30.0, 30.0), frozenset({1, 2}))])
    for box in (Box(25.0, 25.0, 26.0, 26.0), Box(-5.0, -5.0, 4.0, 4.0), Box(-40.0, -9.0, -6.0, 8.0)):
        world.move({1: box})
        world.move({key: dice.box() for key in range(2, 60)})
    world.retract([1, 2, 3])
    world.verify()


def test_expiry(index):
    world = Movers(index)
    box, away = Box(0.0, 0.0, 1.0, 1.0), Box(5.0, 5.0, 6.0, 6.0)
    world.insert([Clause(1, box, frozenset({1}))])
    world.publish([point(key, 0.5, 0.5, {1}) for key in range(4)], [10, 11, 20, 5])
    world.pass_time(10)
    world.verify()
    assert index.object_count == 2
    world.insert([Clause(2, box, frozenset({1}))])
    world.move({1: away})
    world.pass_time(19)
    world.move({1: box})
    world.pass_time(20)
    sent = world.change_count
    world.move({1: away})
    world.move({1: box})
    assert world.change_count == sent, "what has expired is in no result"
    with pytest.raises(ValueError, match="now_ms is 19, must be at least 20"):
        index.pass_time(19)
    with pytest.raises(KeyError, match="id 2"):
        index.retract(ids([2]))
    world.verify()


def test_expired_when_published(index):
    world = Movers(index)
    world.pass_time(100)
    world.insert([Clause(1, Box(0.0, 0.0, 1.0, 1.0), frozenset({1}))])
    world.publish([point(key, 0.5, 0.5, {1}) for key in range(3)], [100, 101, 99])
    assert world.change_count == 1
    world.verify()


def test_ids_are_used_again(index):
    """After retract, and after expiry, with another place and other words."""
    world = Movers(index)
    world.insert([Clause(1, Box(0.0, 0.0, 1.0, 1.0), frozenset({1}))])
    world.publish([point(1, 0.5, 0.5, {1}), point(2, 0.5, 0.5, {1})], [5, FOR_EVER])
    world.retract([2])
    world.publish([point(2, 3.0, 3.0, {2})], [FOR_EVER])
    world.pass_time(5)
    world.publish([point(1, 3.0, 3.0, {1, 2})], [9])
    world.insert([Clause(2, Box(2.0, 2.0, 4.0, 4.0), frozenset({2}))])
    world.move({1: Box(3.0, 3.0, 4.0, 4.0)})
    world.pass_time(9)
    world.publish([point(1, 0.5, 0.5, {1})], [FOR_EVER])
    world.move({1: Box(0.0, 0.0, 1.0, 1.0)})
    world.verify()
    assert world.change_count == 7


def test_a_refused_batch_changes_nothing(index):
    dice, world = MoverDice(2), Movers(index)
    world.insert([dice.clause(key) for key in range(10)])
    world.publish([dice.area_object(key) for key in range(30)], [FOR_EVER] * 30)
    good = Box(0.0, 0.0, 1.0, 1.0)

    def insert(clauses):
        index.insert(
            ids(one.clause_id for one in clauses),
            boxes_of([one.box for one in clauses]),
            keyword_lists([one.required for one in clauses]),
        )

    for clauses, wrong in (([dice.clause(100), dice.clause(3)], 3), ([dice.clause(100)] * 2, 100)):
        with pytest.raises(KeyError, match=f"id {wrong}"):
            insert(clauses)
    for keys, wrong in (([1, 99], 99), ([1, 1], 1)):
        with pytest.raises(KeyError, match=f"id {wrong}"):
            index.move(ids(keys), boxes_of([good, good]))
        with pytest.raises(KeyError, match=f"id {wrong}"):
            index.remove(ids(keys))
        with pytest.raises(KeyError, match=f"id {wrong}"):
            index.retract(ids(keys))
    for keys, wrong in (([100, 3], 3), ([100, 100], 100)):
        with pytest.raises(KeyError, match=f"id {wrong}"):
            index.publish(area_batch([dice.area_object(key) for key in keys]), ids([9, 9]))
    with pytest.raises(ValueError, match="object 100 has no keyword"):
        index.publish(area_batch([point(100, 0.0, 0.0, set())]), ids([9]))
    for box in (Box(1.0, 0.0, 0.0, 1.0), Box(0.0, 0.0, 1.0, float("inf")), Box(float("nan"), 0, 1, 1)):
        with pytest.raises(ValueError, match="the box of clause 101 is"):
            insert([dice.clause(100), Clause(101, box, frozenset({1}))])
        with pytest.raises(ValueError, match="the box of clause 2 is"):
            index.move(ids([1, 2]), boxes_of([good, box]))
    with pytest.raises(ValueError, match="clause 100 requires no keyword"):
        index.insert(ids([100]), boxes_of([good]), keyword_lists([frozenset()]))
    world.verify()
    world.move({key: dice.box() for key in range(10)})
    world.retract(list(range(30)))


def test_nothing_there(index):
    world = Movers(index)
    world.insert([])
    world.publish([], [])
    world.move({})
    world.remove([])
    world.retract([])
    world.pass_time(0)
    world.insert([Clause(1, Box(0.0, 0.0, 1.0, 1.0), frozenset({1}))])
    world.remove([1])
    world.verify()


def test_candidates_are_counted(index):
    world = Movers(index)
    world.insert([Clause(key, Box(0.0, 0.0, 1.0, 1.0), frozenset({1})) for key in range(5)])
    before = index.candidate_count
    world.publish([point(1, 0.5, 0.5, {1})], [FOR_EVER])
    assert index.candidate_count >= before + 5
    before = index.candidate_count
    world.move({1: Box(5.0, 5.0, 6.0, 6.0)})
    assert index.candidate_count >= before + 1


def test_memory_is_reported_and_used_again(index):
    before = index.memory_bytes()
    box = Box(0.0, 0.0, 1.0, 1.0)
    clauses = [Clause(key, box, frozenset({key % 50})) for key in range(500)]
    objects = [point(key, 0.5, 0.5, {key % 50, 60}) for key in range(5_000)]
    index.insert(
        ids(one.clause_id for one in clauses),
        boxes_of([box] * 500),
        keyword_lists([{i % 50} for i in range(500)]),
    )
    sizes = []
    for number in range(1, 9):
        found = index.publish(area_batch(objects), ids([number] * 5_000))
        assert sum(map(len, rows_of(found))) == 50_000
        sizes.append(index.memory_bytes())
        for _ in range(60):
            index.pass_time(number)
    index.check()
    assert sizes[0] >= before + 5_000 * 16
    assert sizes[-1] <= 1.5 * sizes[1]
    assert index.object_count == 0
