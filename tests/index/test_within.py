"""The contract of indexes of places: what has all keywords and lies in a box."""

from __future__ import annotations

import numpy as np
import pytest

from bench.peers.inverted_file import InvertedFile
from index.iqf_plus import IqfPlusObjectIndex
from index.naive import NaiveObjectIndex
from index.published.grid_files import KkObjects, SsObjects
from index.published.iq_tree import IqTreeObjectIndex
from index.published.iqf import IqfObjectIndex
from index.published.ir_tree import IrTreeObjectIndex
from index.published.quad_files import IqObjects, RqObjects
from tests.index.boxes import Box, BoxDice, boxes_of
from tests.index.brute import Object, ids, keyword_lists, object_batch
from tests.index.published import marked
from tests.support.amounts import examples

FACTORIES = {
    "naive": NaiveObjectIndex,
    "iqf": IqfObjectIndex,
    "iqf, all keywords frequent": lambda: IqfObjectIndex(100.0),
    "iq-tree": IqTreeObjectIndex,
    "ir-tree": IrTreeObjectIndex,
    "iqf-plus": IqfPlusObjectIndex,
    "iqf-plus, nearly all keywords long": lambda: IqfPlusObjectIndex(1),
    "inverted-file": InvertedFile,
    "iq-plus-tree": lambda: IqObjects(long=5),
    "rq-plus-tree": lambda: RqObjects(long=3),
    "ss-index": lambda: SsObjects(side=7),
    "kk-index": lambda: KkObjects(side=5),
}


@pytest.fixture(params=marked(FACTORIES))
def index(request):
    return FACTORIES[request.param]()


def ask(index, rows):
    """What the index says to rows of (required, box), as one sorted list each, duplicates included."""
    found = index.within(keyword_lists([words for words, _ in rows]), boxes_of([box for _, box in rows]))
    return [sorted(found.row(i).tolist()) for i in range(len(rows))]


def expected(objects, rows):
    return [
        sorted(
            one.object_id
            for one in objects.values()
            if words
            and words <= one.keywords
            and box.x1_m <= one.x_m <= box.x2_m
            and box.y1_m <= one.y_m <= box.y2_m
        )
        for words, box in rows
    ]


def rows_of(dice, count):
    rows = [(dice.words(dice.random.choice((1, 1, 2, 3))), dice.box()) for _ in range(count)]
    return [*rows, (frozenset(), Box(-9.0, -9.0, 9.0, 9.0)), (frozenset({999}), dice.box())]


@pytest.mark.parametrize("seed", range(examples(4)))
def test_any_mix_of_operations(index, seed):
    dice = BoxDice(seed)
    there = {}
    next_id = 1
    count = 0
    for _ in range(40):
        kind = dice.random.choice(("insert", "insert", "remove", "ask", "ask"))
        if kind == "insert":
            new = [dice.object(next_id + i) for i in range(dice.random.choice((0, 1, 1, 7, 90)))]
            next_id += len(new)
            index.insert(object_batch(new))
            there.update({one.object_id: one for one in new})
        elif kind == "remove":
            some = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 9)))
            index.remove(ids(some))
            for key in some:
                del there[key]
        rows = rows_of(dice, dice.random.choice((0, 1, 6)))
        found = ask(index, rows)
        assert found == expected(there, rows)
        count += sum(map(len, found))
    index.check()
    assert count > 0, "a run without an answer proves nothing"


def test_edges_belong_to_a_box(index):
    inside = [(0.1, 0.1), (0.3, 0.1), (0.3, 0.7), (0.1, 0.7)]
    less, more, most = (np.nextafter(0.1, 0.0), np.nextafter(0.3, 1.0), np.nextafter(0.7, 1.0))
    outside = [(less, 0.1), (0.3, most), (more, 0.4)]
    places = inside + outside
    there = [Object(i, float(x), float(y), frozenset({1, 2})) for i, (x, y) in enumerate(places)]
    index.insert(object_batch(there))
    rows = [(words, Box(0.1, 0.1, 0.3, 0.7)) for words in (frozenset({1}), frozenset({1, 2}))]
    assert ask(index, rows) == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_many_objects_and_keywords(index):
    """Long lists are searched by place: keywords that nearly all have, beside some that few have."""
    dice = BoxDice(7)
    there = {}
    for key in range(2_000):
        words = dice.words(3, 4) | (dice.words(2, 300) if dice.random.random() < 0.3 else frozenset())
        x_m, y_m = dice.random.uniform(-100.0, 100.0), dice.random.uniform(-100.0, 100.0)
        there[key] = Object(key, x_m, y_m, words)
    index.insert(object_batch(list(there.values())))
    rows = []
    for _ in range(60):
        x_m, y_m = dice.random.uniform(-110.0, 100.0), dice.random.uniform(-110.0, 100.0)
        side_m = dice.random.choice((0.5, 10.0, 150.0))
        words = dice.words(3, 4) if dice.random.random() < 0.6 else dice.words(2, 300)
        rows.append((words, Box(x_m, y_m, x_m + side_m, y_m + side_m)))
    found = ask(index, rows)
    assert found == expected(there, rows)
    assert sum(map(len, found)) > 1_000


def test_nothing_there(index):
    assert ask(index, rows_of(BoxDice(1), 3)) == [[]] * 5
