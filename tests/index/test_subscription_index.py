"""The contract of subscription indexes. The catalogue's are tested, and more of FACTORIES."""

from __future__ import annotations

import pytest

from bench.peers.subscription_dict import SubscriptionDict
from bench.peers.subscription_strtree import SubscriptionStrtree
from index.catalogue import SUBSCRIPTION_INDEXES
from index.contracts import InconsistentIndexError
from index.naive import NaiveSubscriptionIndex
from index.published.ciq import Ciq
from index.published.igpt import Igpt
from index.published.sq_tree import SqTree
from index.sq_plus_tree import SqPlusTree
from tests.index.brute import Anchored, Dice, Interest, Object, ids, object_batch, reach_batch
from tests.index.published import marked
from tests.index.subscriptions import insert
from tests.support.amounts import examples

FACTORIES = {
    **SUBSCRIPTION_INDEXES,
    "sq-plus-tree, small root": lambda: SqPlusTree(square=(0.0, 0.0, 4.0)),
    "sq-tree, tiny leaves": lambda: SqTree(capacity=2),
    "sq-tree, fixed root": lambda: SqTree(square=(0.0, 0.0, 4.0), capacity=3),
    "ciq, small root": lambda: Ciq((0.0, 0.0, 4.0), levels=1),
    "igpt, small leaves": lambda: Igpt((0.0, 0.0, 4.0), capacity=3, groups=2),
    "igpt, near": lambda: Igpt((0.0, 0.0, 8.0), capacity=20, near=True),
    "dict": SubscriptionDict,
    "strtree": SubscriptionStrtree,
}


WEIGHTED = (NaiveSubscriptionIndex, SqPlusTree, Ciq, Igpt)
"""Those that take interests of TFIDF."""
MODELS = ((1, 2, 3), (4,))


@pytest.fixture(params=marked(FACTORIES))
def index(request):
    return FACTORIES[request.param]()


def weighted_or_skip(index, similarities):
    if 4 in similarities and not isinstance(index, WEIGHTED):
        pytest.skip("takes no interests of TFIDF")


def matched(index, objects):
    """What the index says, as one sorted list for each object, duplicates included."""
    found = index.match(object_batch(objects))
    return [sorted(found.row(i).tolist()) for i in range(len(objects))]


def expected(subscriptions, objects):
    return [
        sorted(one.subscription_id for one in subscriptions.values() if one.is_matched_by(item))
        for item in objects
    ]


@pytest.mark.parametrize("similarities", MODELS, ids=["sets", "tf-idf"])
@pytest.mark.parametrize("seed", range(examples(4)))
def test_any_mix_of_operations(index, seed, similarities):
    weighted_or_skip(index, similarities)
    dice = Dice(seed, similarities)
    there = {}
    next_id = 1
    matches = 0
    for step in range(60):
        kind = dice.random.choice(("insert", "insert", "move", "remove", "match", "match"))
        some = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 6)))
        if kind == "insert":
            new = [dice.anchored(next_id + i) for i in range(dice.random.choice((0, 1, 1, 7, 30)))]
            next_id += len(new)
            insert(index, new)
            there.update({one.subscription_id: one for one in new})
        elif kind == "move":
            moved = [dice.anchored(key, there[key].interest) for key in some]
            index.move(reach_batch(moved))
            there.update({one.subscription_id: one for one in moved})
        elif kind == "remove":
            index.remove(ids(some))
            for key in some:
                del there[key]
            objects = [dice.object(i) for i in range(20)]
            for row in matched(index, objects):
                assert not set(row) & set(some)
        else:
            objects = [
                dice.object(dice.random.randint(0, 60)) for _ in range(dice.random.choice((0, 1, 8)))
            ]
            found = matched(index, objects)
            assert found == expected(there, objects)
            matches += sum(map(len, found))
        assert len(index) == len(there)
        if step % 7 == 0:
            index.check()
    assert matches > 0, "a run without a match proves nothing"


def test_observing_changes_nothing_that_is_found(index):
    dice = Dice(3)
    there = {key: dice.anchored(key) for key in range(60)}
    seen, objects = ([dice.object(start + i) for i in range(20)] for start in (0, 100))
    index.observe(object_batch(seen))
    insert(index, list(there.values()))
    index.observe(object_batch(seen))
    index.check()
    found = matched(index, objects)
    assert found == expected(there, objects)
    assert any(found)


def test_the_tie_is_decided_by_the_id(index):
    dice = Dice(1)
    interest = dice.interest()
    item = next(one for one in map(dice.object, range(100)) if one.keywords & interest.keywords)
    length = interest.length(0.0, 0.0, item)
    for key, reach_id in enumerate((item.object_id - 1, item.object_id, item.object_id + 1)):
        one = dice.anchored(key, interest)
        one = type(one)(key, 0.0, 0.0, 0.0, length, reach_id, interest)
        insert(index, [one])
    assert matched(index, [item]) == [[2]]


@pytest.mark.parametrize("place_m", [0.0, 3.0])
def test_the_tie_is_decided_by_the_id_also_if_nothing_is_near_enough(index, place_m):
    """A reach of zero: only an object at the very place is a tie."""
    interest = Interest(0.0, 3, frozenset({5, 8}))
    far = [Anchored(key, 40.0, 40.0, 0.0, 1.0, 3, interest) for key in range(100, 300)]
    ties = [Anchored(key, place_m, place_m, 0.0, 0.0, key, interest) for key in (2, 3, 4)]
    insert(index, [*far, *ties])
    item = Object(3, place_m, place_m, frozenset({1, 5, 8}))
    assert matched(index, [item]) == expected({one.subscription_id: one for one in (*far, *ties)}, [item])
    assert matched(index, [item]) == [[4]]


@pytest.mark.parametrize("similarity", [1, 2, 3, 4])
def test_many_keywords(index, similarity):
    """Up to 16 a subscription and 64 an object, so that they share many, in all classes of sizes."""
    weighted_or_skip(index, (similarity,))
    dice = Dice(10 + similarity)
    there = {}
    for key in range(150):
        interest = Interest(
            dice.random.choice((1.0, 6.0, 60.0)),
            similarity,
            dice.words(dice.random.choice((2, 5, 16)), 80),
        )
        there[key] = dice.anchored(key, interest)
    insert(index, list(there.values()))
    objects = [
        Object(
            1_000 + i,
            dice.coordinate(),
            dice.coordinate(),
            dice.words(dice.random.choice((3, 9, 64)), 80),
        )
        for i in range(40)
    ]
    found = matched(index, objects)
    assert found == expected(there, objects)
    assert sum(map(len, found)) > 100


def test_the_first_subscription_may_have_many_keywords(index):
    interest = Interest(6.0, 1, frozenset(range(200)))
    insert(index, [Anchored(1, 0.0, 0.0, 0.0, 6.0, 0, interest)])
    index.check()
    there = {1: Anchored(1, 0.0, 0.0, 0.0, 6.0, 0, interest)}
    objects = [Object(i, 0.5, 0.0, frozenset(range(200 - i))) for i in range(1, 200, 20)]
    assert matched(index, objects) == expected(there, objects)


def test_an_infinite_reach_matches_whatever_shares_a_keyword(index):
    dice = Dice(2)
    interest = dice.interest()
    one = dice.anchored(5, interest)
    insert(index, [type(one)(5, 0.0, 0.0, 0.0, float("inf"), 0, interest)])
    objects = [dice.object(i) for i in range(50)]
    assert matched(index, objects) == [
        [5] if item.keywords & interest.keywords else [] for item in objects
    ]


def test_a_refused_batch_changes_nothing(index):
    dice = Dice(3)
    there = {key: dice.anchored(key) for key in range(10)}
    insert(index, list(there.values()))
    with pytest.raises(KeyError, match="id 3"):
        insert(index, [dice.anchored(100), dice.anchored(3)])
    with pytest.raises(KeyError, match="id 100"):
        insert(index, [dice.anchored(100), dice.anchored(100)])
    with pytest.raises(KeyError, match="id 99"):
        index.move(reach_batch([dice.anchored(1), dice.anchored(99)]))
    with pytest.raises(KeyError, match="id 99"):
        index.remove(ids([1, 99]))
    with pytest.raises(KeyError, match="id 1"):
        index.remove(ids([2, 1, 1]))
    index.check()
    assert len(index) == 10
    objects = [dice.object(i) for i in range(40)]
    assert matched(index, objects) == expected(there, objects)


def test_growth_and_shrinkage(index):
    """Far beyond the first capacity and back, so that tables grow and pools are compacted."""
    dice = Dice(4)
    there = {key: dice.anchored(key) for key in range(2_000)}
    insert(index, list(there.values()))
    gone = dice.random.sample(sorted(there), 1_900)
    for start in range(0, len(gone), 190):
        index.remove(ids(gone[start : start + 190]))
    for key in gone:
        del there[key]
    index.check()
    objects = [dice.object(i) for i in range(40)]
    assert matched(index, objects) == expected(there, objects)


def test_check_notices_damage():
    index = NaiveSubscriptionIndex()
    dice = Dice(5)
    insert(index, [dice.anchored(key) for key in range(5)])
    index.check()
    index._table.rows[2]["id"] = 77
    with pytest.raises(InconsistentIndexError):
        index.check()
