"""The contract of object indexes. The catalogue's are tested, and more of FACTORIES."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from bench.peers.inverted_file import InvertedFile
from index.catalogue import OBJECT_INDEXES
from index.contracts import InconsistentIndexError
from index.iqf_plus import IqfPlusObjectIndex
from index.naive import NaiveObjectIndex
from index.published.iq_tree import IqTreeObjectIndex
from index.published.iqf import IqfObjectIndex
from index.published.ir_tree import IrTreeObjectIndex
from index.tables.buckets.question_kernels import COUNTED_MAX, Question, fill_least, least_share
from safe_region.scoring.formulas import text_distance
from tests.index.brute import (
    SIMILARITIES,
    TFIDF,
    WEIGHTS,
    Dice,
    Interest,
    Object,
    ids,
    interest_batch,
    object_batch,
)
from tests.index.published import marked
from tests.support.amounts import examples
from tests.support.leaves import compiled

FACTORIES = {
    **OBJECT_INDEXES,
    "iqf, all keywords frequent": lambda: IqfObjectIndex(100.0),
    "iqf-plus, nearly all keywords long": lambda: IqfPlusObjectIndex(1),
    "inverted-file": InvertedFile,
}


class Sought(NamedTuple):
    interest: Interest
    x_m: float
    y_m: float
    count: int
    bound_m: float
    first_id: int = -1_000


@pytest.fixture(params=marked(FACTORIES))
def index(request):
    return FACTORIES[request.param]()


def ask(index, location_requests):
    """Answers are lists of (length, id)."""
    location_requests = [Sought(*one) for one in location_requests]
    found = index.best(
        interest_batch([one.interest for one in location_requests]),
        np.array([one.x_m for one in location_requests], dtype=np.float64),
        np.array([one.y_m for one in location_requests], dtype=np.float64),
        np.array([one.count for one in location_requests], dtype=np.int64),
        np.array([one.bound_m for one in location_requests], dtype=np.float64),
        np.array([one.first_id for one in location_requests], dtype=np.int64),
    )
    rows = [slice(found.offsets[i], found.offsets[i + 1]) for i in range(len(location_requests))]
    for row, one in zip(rows, location_requests, strict=True):
        assert (found.r_m[row] <= found.length_m[row]).all()
        assert (found.r_m[row] <= one.interest.weight_m).all()
    return [list(zip(found.length_m[row].tolist(), found.ids[row].tolist(), strict=True)) for row in rows]


def expected(objects, location_requests):
    results = []
    for interest, x_m, y_m, count, bound, first_id in (Sought(*one) for one in location_requests):
        lengths = [
            (interest.length(x_m, y_m, one), one.object_id)
            for one in objects.values()
            if one.object_id >= first_id
        ]
        found = sorted(pair for pair in lengths if pair[0] is not None and pair[0] <= bound)
        results.append(found[:count])
    return results


def location_requests(dice, count):
    return [
        (
            dice.interest(),
            dice.coordinate(),
            dice.coordinate(),
            dice.random.choice((0, 1, 3, 10, 1_000)),
            dice.random.choice((float("inf"), float("inf"), 0.0, 5.0, 20.0)),
            dice.random.choice((-5, -5, 3, 40, 200)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(examples(4)))
def test_any_mix_of_operations(index, seed):
    dice = Dice(seed, (1, 2, 3, 4))
    there = {}
    next_id = 1
    ranked = 0
    for step in range(60):
        kind = dice.random.choice(("insert", "insert", "remove", "ask", "ask"))
        if kind == "insert":
            new = [dice.object(next_id + i) for i in range(dice.random.choice((0, 1, 1, 7, 30)))]
            next_id += len(new)
            index.insert(object_batch(new))
            there.update({one.object_id: one for one in new})
        elif kind == "remove":
            some = dice.random.sample(sorted(there), min(len(there), dice.random.randint(0, 9)))
            index.remove(ids(some))
            for key in some:
                del there[key]
            queries = [
                (one[0], one[1], one[2], 1_000, float("inf")) for one in location_requests(dice, 5)
            ]
            for row in ask(index, queries):
                assert not {key for _, key in row} & set(some)
        else:
            queries = location_requests(dice, dice.random.choice((0, 1, 6)))
            found = ask(index, queries)
            assert found == expected(there, queries)
            ranked += sum(map(len, found))
        assert len(index) == len(there)
        if step % 7 == 0:
            index.check()
    assert ranked > 0, "a run without an answer proves nothing"


def test_nothing_there(index):
    assert ask(index, location_requests(Dice(1), 4)) == [[], [], [], []]


def test_a_refused_batch_changes_nothing(index):
    dice = Dice(2)
    there = {key: dice.object(key) for key in range(10)}
    index.insert(object_batch(list(there.values())))
    with pytest.raises(KeyError, match="id 3"):
        index.insert(object_batch([dice.object(100), dice.object(3)]))
    with pytest.raises(KeyError, match="id 100"):
        index.insert(object_batch([dice.object(100), dice.object(100)]))
    with pytest.raises(KeyError, match="id 99"):
        index.remove(ids([1, 99]))
    with pytest.raises(KeyError, match="id 1"):
        index.remove(ids([1, 1]))
    index.check()
    queries = location_requests(dice, 20)
    assert ask(index, queries) == expected(there, queries)


def test_growth_and_shrinkage(index):
    dice = Dice(3)
    there = {key: dice.object(key) for key in range(3_000)}
    index.insert(object_batch(list(there.values())))
    gone = dice.random.sample(sorted(there), 2_900)
    for start in range(0, len(gone), 290):
        index.remove(ids(gone[start : start + 290]))
    for key in gone:
        del there[key]
    index.check()
    queries = location_requests(dice, 30)
    assert ask(index, queries) == expected(there, queries)


def near_a_border(dice):
    """A coordinate that a border of cells may have, or one so near that a difference rounds to 0."""
    border = dice.random.choice((0.0, 0.0, 1_024.0, 2_048.0, 3_000.0))
    return dice.random.choice((-1.0, 1.0)) * (border + dice.random.choice((0.0, 5e-324, 1e-14, 0.5)))


def spread(dice, kind):
    """A position of one kind."""
    if kind == "all equal":
        return 3.0, -2.0
    if kind == "clustered":
        middle = dice.random.choice((-4_000.0, 0.0, 9_000.0))
        return middle + dice.random.gauss(0, 1), dice.random.gauss(0, 1)
    if kind == "tiny":
        return 1e6 + dice.random.randint(0, 9) * 1e-9, dice.random.random() * 1e-7
    if kind == "about zero":
        return near_a_border(dice), near_a_border(dice)
    if kind == "far outside" and dice.random.random() < 0.1:
        return dice.random.choice((-1e100, 1e15, 3e7)), dice.random.choice((1e90, -1e12, 0.0))
    return dice.random.random() * 100, dice.random.random() * 100


@pytest.mark.parametrize(
    "kind", ["all equal", "clustered", "tiny", "about zero", "far outside", "uniform"]
)
def test_any_places(index, kind):
    """As many as split cells down to the depth cap, taken out again in turns."""
    dice = Dice(6)
    there = {}
    for step in range(6):
        new = [
            Object(key, *spread(dice, kind), dice.words(6)) for key in range(step * 100, step * 100 + 100)
        ]
        index.insert(object_batch(new))
        there.update({one.object_id: one for one in new})
        gone = dice.random.sample(sorted(there), 60 if step < 3 else 120)
        index.remove(ids(gone))
        for key in gone:
            del there[key]
        queries = [
            (dice.interest(), *spread(dice, kind), dice.random.choice((1, 5, 300)), bound)
            for bound in (float("inf"), float("inf"), 30.0, 1e4)
        ]
        assert ask(index, queries) == expected(there, queries)
        index.check()


def zipf_words(dice, vocabulary, most):
    """Low keywords often, high ones rarely."""
    wanted = dice.random.randint(1, most)
    return frozenset(int(vocabulary ** dice.random.random()) - 1 for _ in range(wanted))


@pytest.mark.parametrize("most", [3, 64])
def test_few_and_many_keywords(index, most):
    dice = Dice(7)
    there = {
        key: Object(key, dice.random.random() * 50, dice.random.random() * 50, words)
        for key, words in ((key, zipf_words(dice, 500, most)) for key in range(400))
    }
    index.insert(object_batch(list(there.values())))
    index.check()
    queries = []
    for similarity in (*SIMILARITIES, TFIDF):
        for weight_m in (0.0, 3.0, 50.0, 1e5):
            words = dice.random.choice(list(there.values())).keywords
            if similarity == TFIDF:
                words = frozenset({*words, 0, 1})
            for keywords in (words, frozenset(sorted(words)[:4]), frozenset({0, 1, 7_000})):
                interest = Interest(weight_m, similarity, keywords)
                queries.append((interest, dice.random.random() * 50, 20.0, 11, float("inf")))
                queries.append((interest, 500.0, -80.0, 200, 600.0))
    assert ask(index, queries) == expected(there, queries)


def test_a_length_equal_to_the_bound_is_included(index):
    dice = Dice(8)
    there = {key: dice.object(key) for key in range(200)}
    index.insert(object_batch(list(there.values())))
    queries = [(*one[:3], 50, float("inf")) for one in location_requests(dice, 20)]
    for question, result in zip(queries, expected(there, queries), strict=True):
        if result:
            bounded = [(*question[:4], result[len(result) // 2][0])]
            assert ask(index, bounded) == expected(there, bounded)


def test_frequent_keywords_change(index):
    """Keywords rise and fall while objects come and go, and the place they are at moves."""
    dice = Dice(9)
    there = {}
    for phase in range(6):
        new = []
        for key in range(phase * 1_000, phase * 1_000 + (40, 150, 300, 150, 40, 300)[phase]):
            x_m, y_m = phase * 1_000 + dice.random.random() * 50, dice.random.random() * 50
            new.append(Object(key, x_m, y_m, frozenset({phase, 10 + phase % 2, 100 + key % 40})))
        index.insert(object_batch(new))
        there.update({one.object_id: one for one in new})
        old = [key for key in there if key < phase * 1_000]
        for half in (old[::2], old[1::2]):
            index.remove(ids(half))
            for key in half:
                del there[key]
            index.check()
            queries = [
                (
                    Interest(weight_m, 1, frozenset({phase, 11, 105})),
                    phase * 1_000.0,
                    25.0,
                    10,
                    float("inf"),
                )
                for weight_m in (1.0, 500.0)
            ]
            assert ask(index, queries) == expected(there, queries)


def test_memory_does_not_grow_by_coming_and_going(index):
    dice = Dice(10)
    sizes = []
    for turn in range(6):
        keys = range(turn * 400, turn * 400 + 400)
        index.insert(object_batch([dice.object(key) for key in keys]))
        sizes.append(index.memory_bytes())
        index.remove(ids(keys))
        index.check()
    assert len(index) == 0
    assert sizes[-1] <= 2 * sizes[0]


@pytest.mark.parametrize("name", marked(sorted(FACTORIES.keys() - {"naive"})))
def test_objects_that_cannot_be_held(name):
    index = FACTORIES[name]()
    for one in (
        Object(1, float("nan"), 0.0, frozenset({1})),
        Object(1, 0.0, float("inf"), frozenset({1})),
        Object(1, 0.0, 0.0, frozenset()),
        Object(1, 0.0, 0.0, frozenset({-3, 1})),
    ):
        with pytest.raises(ValueError, match=r"position|keyword"):
            index.insert(object_batch([one]))
    index.check()
    assert len(index) == 0


def test_check_notices_damage():
    index = NaiveObjectIndex()
    dice = Dice(4)
    index.insert(object_batch([dice.object(key) for key in range(5)]))
    index.check()
    rows = index._table.rows
    longest = int(rows["keyword_count"].argmax())
    index._table.pool[int(rows[longest]["keyword_start"])] = 99
    with pytest.raises(InconsistentIndexError):
        index.check()


def many_there(index):
    dice = Dice(11)
    index.insert(object_batch([dice.object(key) for key in range(300)]))
    index.check()


def damage_place(index):
    index._table.places[int(index._table.rows[5]["keyword_start"])] += 1


def damage_position(index):
    index._table.rows["x_m"][7] += 0.5


def damage_count(index):
    index._trees.arrays.nodes["count"][0] += 1


def damage_cell(index):
    nodes = index._trees.arrays.nodes
    nodes["x_max"][int(nodes[0]["first_child"])] -= 1.0


def damage_keyword_min(index):
    index._trees.arrays.nodes["keyword_min"][0] = 50


def damage_pool(index):
    index._trees.arrays.meta[4] = -1  # forgets all free blocks


def damage_signature(index):
    index._trees.arrays.entries["signature"][: 32 * 3] ^= 1


TREE_DAMAGE = [
    damage_place,
    damage_position,
    damage_count,
    damage_cell,
    damage_keyword_min,
    damage_pool,
    damage_signature,
]


@pytest.mark.published
@pytest.mark.parametrize("damage", TREE_DAMAGE)
@pytest.mark.parametrize("name", ["iqf, all keywords frequent", "iq-tree"])
def test_check_notices_damage_of_trees(name, damage):
    index = FACTORIES[name]()
    many_there(index)
    damage(index)
    with pytest.raises(InconsistentIndexError):
        index.check()


def damage_box(index):
    index._tree.nodes["x2_m"][leaf_of(index)] -= 1.0


def damage_file(index):
    index._tree.nodes["file"][leaf_of(index)] ^= 1


def damage_leaf(index):
    index._tree.nodes["count"][leaf_of(index)] -= 1


def damage_posting(index):
    its = index._tree.keys >> 32 == index._tree.nodes["file"][leaf_of(index)]
    index._tree.keys[int(its.argmax())] = 1 << 40


def damage_promise(index):
    index._tree.values[index._tree.keys >= 0] += 1


def leaf_of(index):
    nodes = index._tree.nodes
    return int(np.flatnonzero((nodes["is_leaf"] == 1) & (nodes["live"] > 0))[0])


IR_DAMAGE = [damage_box, damage_file, damage_leaf, damage_posting, damage_promise]


@pytest.mark.published
@pytest.mark.parametrize("damage", IR_DAMAGE)
def test_check_notices_damage_of_the_ir_tree(damage):
    index = IrTreeObjectIndex()
    many_there(index)
    damage(index)
    with pytest.raises(InconsistentIndexError):
        index.check()


def damage_list_keyword(index):
    index._files.lists["keyword"][2] = 77


def damage_list_count(index):
    index._files.lists["count"][index._files.lists["root"] == -1] -= 1


def damage_run(index):
    index._files.runs.ends[0] += 4


def damage_entry(index):
    longest = int(index._files.lists["count"].argmax())
    start = int(index._files.lists[longest]["start"])
    records = index._files.runs.records
    records[start] = records[start + 1]


def damage_map(index):
    index._files.values[index._files.keys == 4] = 0


def damage_root(index):
    index._square = index._square._replace(half_m=17.0)


FILE_DAMAGE = [
    damage_list_keyword,
    damage_list_count,
    damage_run,
    damage_entry,
    damage_map,
    damage_root,
]


@pytest.mark.published
@pytest.mark.parametrize("damage", FILE_DAMAGE)
def test_check_notices_damage_of_the_inverted_file(damage):
    index = IqfObjectIndex()
    many_there(index)
    assert len(index.frequent_keywords()) == 1
    damage(index)
    with pytest.raises(InconsistentIndexError):
        index.check()


@pytest.mark.published
def test_check_notices_a_miscounted_keyword():
    index = IqTreeObjectIndex()
    many_there(index)
    index._occurrences.values[int((index._occurrences.keys >= 0).argmax())] += 1
    with pytest.raises(InconsistentIndexError, match="keyword 0 has a wrong count"):
        index.check()


@pytest.mark.published
def test_the_frequent_keywords_are_the_top_of_all():
    index = IqfObjectIndex(10.0)
    objects = [Object(key, float(key), 0.0, frozenset({key % 8, 50 + key % 32})) for key in range(320)]
    index.insert(object_batch(objects))
    assert index.frequent_keywords() == [0, 1, 2, 3]
    rarer = {0: 0, 1: 80, 2: 80, 3: 80}
    left = [key for key in range(320) if key < rarer.get(key % 8, 160)]
    index.remove(ids(set(range(320)) - set(left)))
    index.check()
    assert index.frequent_keywords() == [1, 2, 3, 4, 5, 6, 7], "the top 10 percent, and 1 to 3 stay"
    index.remove(ids(left))
    assert index.frequent_keywords() == []
    index.check()


def test_the_bound_never_exceeds_a_text_share_after_rounding():
    """For every overlap and number of keywords that an object can have, to the last bit."""
    words = np.arange(64, dtype=np.int32)
    some = np.zeros(1, dtype=np.int64)
    for similarity in SIMILARITIES:
        for own in (1, 2, 3, 5, 7, 16, 31, 64):
            table = np.empty((own + 1, COUNTED_MAX + 1))
            question = Question(
                0.0, 0.0, 731.7, similarity, np.inf, 0, words[:own], np.ones(own), own, some, some, table
            )
            compiled(fill_least)(question, np.empty(own))
            for most in range(1, own + 1):
                bounds = [compiled(least_share)(question, most, least) for least in range(65)]
                for count in range(1, 65):
                    common = min(most, count)
                    share = 731.7 * text_distance(similarity, common, own, count)
                    assert bounds[0] <= share
                    assert bounds[count] <= share
                    assert bounds[count - 1] <= bounds[count]


def test_the_bound_of_weights_never_exceeds_a_text_share():
    """For any keywords that an object may have beside those that are common."""
    dice = Dice(12)
    some = np.zeros(1, dtype=np.int64)
    for _ in range(2_000):
        words = sorted(dice.words(8, 80))
        squares = np.array([WEIGHTS[word] ** 2 * dice.random.choice((1.0, 2.0**-20)) for word in words])
        table = np.empty((len(words) + 1, COUNTED_MAX + 1))
        question = Question(
            0.0, 0.0, 731.7, TFIDF, np.inf, 0, np.array(words, dtype=np.int32), squares, squares.sum(),
            some, some, table,
        )  # fmt: skip
        compiled(fill_least)(question, np.empty(len(words)))
        common = dice.random.sample(range(len(words)), dice.random.randint(1, len(words)))
        common_square = float(squares[common].sum())
        others = dice.random.choice((0.0, 0.0, 1.5, 300.0))
        share = 731.7 * text_distance(TFIDF, common_square, question.norm, common_square + others)
        assert compiled(least_share)(question, len(common), dice.random.randint(1, 20)) <= share
