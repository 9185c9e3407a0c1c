"""An index that learns what objects are like sees those, too, that came before its subscriptions."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Engine, EngineOptions, Positions
from engine.contracts import STATIONARY, TOP_K, handle_of
from engine.stationary.matcher import StationarySpecs
from engine.top_k.matcher import TopKSpecs
from index.batches import InterestBatch, KeywordLists, ObjectBatch
from index.published.sq_tree import SqTree
from index.published.sq_tree.layout import NODE_END, ROOT
from index.square import Square
from safe_region.regions.region import RegionMode

pytestmark = pytest.mark.published
SQUARE = Square(0.0, 0.0, 1_000.0)
CAPACITY = 8
OBJECTS, SUBSCRIPTIONS, WORDS = 400, 300, 6
FOREVER = 2**62


def small_tree():
    return SqTree(SQUARE, CAPACITY)


@pytest.fixture
def engine():
    return Engine(EngineOptions(buffer_extra=0, subscription_index=small_tree, maxdist_m=4_000.0))


def keyword_lists(chance, count):
    lists = [chance.choice(WORDS, chance.integers(1, 4), replace=False) for _ in range(count)]
    return KeywordLists.of([sorted(some.tolist()) for some in lists])


def published(engine, chance):
    """Publish objects in two batches; return these."""
    batches = []
    for first in (1, 1 + OBJECTS // 2):
        numbers = np.arange(first, first + OBJECTS // 2, dtype=np.int64)
        x_m, y_m = chance.uniform(-1_000.0, 1_000.0, (2, len(numbers)))
        batches.append(ObjectBatch(numbers, x_m, y_m, keyword_lists(chance, len(numbers))))
        engine.publish(batches[-1], np.full(len(numbers), FOREVER, dtype=np.int64))
    return batches


def subscribed(engine, chance, kind):
    """Subscribe and wake some; return the matcher's tables."""
    handles = handle_of(kind, 1) + np.arange(SUBSCRIPTIONS, dtype=np.int64)
    x_m, y_m = chance.uniform(-1_000.0, 1_000.0, (2, len(handles)))
    weight_m = np.full(len(handles), 300.0)
    similarity = np.ones(len(handles), dtype=np.int8)
    interests = InterestBatch(weight_m, similarity, keyword_lists(chance, len(handles)))
    k = np.full(len(handles), 2, dtype=np.int64)
    specs = StationarySpecs(interests, k)
    if kind == TOP_K:
        specs = TopKSpecs(interests, k, np.full(len(handles), RegionMode.ANCHORED, dtype=np.int64))
    matcher = engine.matchers[kind]
    matcher.subscribe(handles, specs)
    engine.evaluate(Positions(handles, x_m, y_m))
    return matcher.tables


def nodes(tree):
    arrays = tree._tree()  # noqa: SLF001 - what it has learned is in its arrays
    return arrays.nodes[: arrays.meta[NODE_END]]


@pytest.mark.parametrize("kind", [TOP_K, STATIONARY])
def test_a_tree_planted_after_objects_is_that_which_has_matched_them(engine, kind):
    chance = np.random.default_rng(5)
    batches = published(engine, chance)
    tables = subscribed(engine, chance, kind)
    tree = tables.indexes.alike
    assert tree.seen_count == OBJECTS

    seen = small_tree()
    for batch in batches:
        seen.match(batch)
    slots = tables.subscriptions.used()
    seen.insert(tables.reaches(slots), tables.interests(slots))
    assert nodes(tree)["common"][ROOT] > 1.0
    assert len(nodes(tree)) > 5, "a tree of one node is always the same"
    for field in ("common", "own_count", "subtree_count", "first_child"):
        assert (nodes(tree)[field] == nodes(seen)[field]).all(), field


def test_objects_after_the_last_subscription_are_counted_too(engine):
    chance = np.random.default_rng(6)
    tables = subscribed(engine, chance, TOP_K)
    assert tables.indexes.alike.seen_count == 0
    published(engine, chance)
    assert tables.indexes.alike.seen_count == OBJECTS
    handles = tables.subscriptions.rows["id"][tables.subscriptions.used()]
    engine.matchers[TOP_K].unsubscribe(handles)
    engine.remove(np.arange(1, OBJECTS + 1, dtype=np.int64))
    published(engine, chance)
    assert tables.indexes.alike.seen_count == 2 * OBJECTS
    engine.check()
