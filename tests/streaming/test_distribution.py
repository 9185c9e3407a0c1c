"""Divisions against the paper: its examples, its algorithm by the definition, how alike costs are."""

import json
import math
import random

import numpy as np
import pyarrow as pa
import pytest

from bench.dskype.balance import balance_of
from feeds.schemas import MESSAGES, SOURCE, SUBSCRIPTIONS
from safe_region.scoring.formulas import Similarity
from streaming.arrays.blocks import digests
from streaming.arrays.reading import read_messages, read_subscriptions
from streaming.distribution import MECHANISMS, Sample, needs_reaches
from streaming.distribution.keywords import HYBRIDS, Keyword, Prefix
from streaming.distribution.prefix_kernels import find_prefixes
from streaming.distribution.words import UNKNOWN, Vocabulary, WordDivision
from streaming.partition.reaches import with_reaches
from streaming.plan import Plan
from streaming.tasks.routing import subscriptions_router
from streaming.window_size import WindowSize
from tests.streaming.feed import AREA, FRAME, RandomFeed
from tests.streaming.test_partition import WEIGHTS as WORD_WEIGHTS
from tests.support.amounts import named, seeds

WORDS = [f"w{number}" for number in range(1, 11)]
"""Of Figures 8 and 9, the rarest first."""
STARTS = (0, 2, 5, 8)
"""w1 to w2, w3 to w5, w6 to w8, w9 to w10."""
WEIGHTS = (0.4, 0.3, 0.2, 0.1)
"""Of the keywords of the subscription in both figures."""


def figure_8(cls):
    """The division of Figure 8."""
    high = digests(WORDS)[:, 0]
    by_digest = np.argsort(high)
    vocabulary = Vocabulary(high[by_digest], by_digest.astype(np.int32))
    return cls(4, vocabulary, WordDivision(STARTS))


def partitions_of(distribution, words):
    """The partitions of keywords, the first of which is 0."""
    parts, _ = distribution.look_up(np.ascontiguousarray(digests(words)[:, 0]))
    nowhere = np.zeros(len(words))
    return set(distribution.cells(parts, nowhere, nowhere).tolist())


def sample_of(subscriptions, messages):
    """The blocks of rows of the feeds."""

    def read(reader, rows, schema):
        batch = pa.RecordBatch.from_pylist(rows, schema)
        block, refusals = reader(batch, FRAME, lambda word: WORD_WEIGHTS.get(word, 1.0))
        assert not refusals.reasons
        return block

    return Sample(
        read(read_subscriptions, subscriptions, SUBSCRIPTIONS), read(read_messages, messages, MESSAGES)
    )


def message(words):
    row = RandomFeed(1).message(1) | {"keywords": words}
    return sample_of([], [row]).messages


def test_example_7_by_all_keywords():
    division = figure_8(Keyword)
    assert partitions_of(division, ["w1", "w2", "w5", "w6"]) == {0, 1, 2}
    assert [part for part, _ in division.spread(message(["w6", "w7", "w8", "w9"]))] == [2, 3]


def prefix_of(weights, least, rank=None):
    """Keywords in the loose prefix of a subscription that needs texts at least so similar."""
    count = len(weights)
    found = np.empty(count, dtype=np.bool_)
    find_prefixes(
        np.array([0, count]),
        np.arange(count, dtype=np.int32),
        np.array(weights) ** 2,
        np.array([int(Similarity.TFIDF)], dtype=np.int8),
        np.array([1_000.0]),
        np.array([1_000.0 * (1.0 - least)]),
        np.arange(count, dtype=np.int32) if rank is None else rank,
        found,
    )
    return found.tolist()


def papers_prefix(weights, least):
    """Definition 12, with the paper's bound: the sum of what is behind must be below the threshold."""
    return next(p for p in range(len(weights) + 1) if sum(weights[p:]) < least)


def test_example_8_by_the_loose_prefix():
    least = 0.8 / (1.0 - 0.6) - 0.6 / (1.0 - 0.6)  # Equation 18
    assert least == pytest.approx(0.5)
    assert papers_prefix(WEIGHTS, least) == 2
    assert prefix_of(WEIGHTS, least) == [True, True, False, False]
    division = figure_8(Prefix)
    assert partitions_of(division, ["w1", "w2"]) == {0}
    assert [part for part, _ in division.spread(message(["w6", "w7", "w8", "w9"]))] == [2, 3]


@pytest.mark.parametrize("seed", seeds(200), ids=named)
def test_our_bound_is_never_longer_than_the_papers(seed):
    """Cauchy and Schwarz: no unit vector has more in common with what is left than its length."""
    rng = random.Random(seed.start)
    weights = [rng.random() + 0.01 for _ in range(rng.randint(1, 8))]
    length = math.sqrt(sum(weight**2 for weight in weights))
    weights = [weight / length for weight in weights]
    least = rng.random()
    found = prefix_of(weights, least)
    ours = sum(found)
    assert found == [True] * ours + [False] * (len(weights) - ours)
    assert ours <= papers_prefix(weights, least)


# -- Algorithm 4, from the definition ----------------------------------------------------------------


def cost(ranks, wanted, sent):
    """Equation 16, with one more of each."""
    having = [1 + sum(1 for words in lists if words & ranks) for lists in (wanted, sent)]
    return having[0] * having[1]


def divided(low, high, partitions, wanted, sent):
    """Where parts begin: Algorithm 4, trying every line over sets."""
    if partitions == 1:
        return [low]
    first = partitions // 2
    share = first / partitions
    lines = range(low + 1, high)

    def difference(line):
        left, right = (cost(set(range(*ends)), wanted, sent) for ends in ((low, line), (line, high)))
        return abs(left * (1.0 - share) - right * share)

    line = min(lines, key=difference) if lines else high
    return divided(low, line, first, wanted, sent) + divided(line, high, partitions - first, wanted, sent)


@pytest.mark.parametrize("seed", seeds(40), ids=named)
def test_divisions_are_those_of_the_definition(seed):
    feed = RandomFeed(seed.start)
    rng = random.Random(seed.start)
    published = [feed.message(number) for number in range(rng.randint(0, 40))]
    sample = sample_of([feed.subscription(number) for number in range(rng.randint(0, 30))], published)
    vocabulary = Vocabulary.of(sample)
    used = np.array([rng.random() < 0.7 for _ in sample.subscriptions.words], dtype=np.bool_)

    def sets(block, chosen):
        ranks = vocabulary.ranks(block.high)[block.words].tolist()
        spans = zip(block.offsets.tolist(), block.offsets[1:].tolist(), strict=False)
        return [{ranks[at] for at in range(*span) if chosen[at]} for span in spans]

    every = np.ones(len(sample.messages.words), dtype=np.bool_)
    wanted, sent = sets(sample.subscriptions, used), sets(sample.messages, every)
    for partitions in (1, 2, 3, 4, 7, 8):
        found = WordDivision.choose(partitions, vocabulary, sample, used)
        assert list(found.starts) == divided(0, len(vocabulary), partitions, wanted, sent)


def test_the_rarest_keywords_come_first():
    lists = (["a"], ["a", "b"], ["a", "b", "c"])
    rows = [RandomFeed(1).message(number) | {"keywords": words} for number, words in enumerate(lists)]
    vocabulary = Vocabulary.of(sample_of([], rows))
    high = np.ascontiguousarray(digests(["a", "b", "c", "d"])[:, 0])
    assert vocabulary.ranks(high).tolist() == [2, 1, 0, UNKNOWN]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_stored_distribution_divides_alike(mechanism):
    feed = RandomFeed(5)
    sample = sample_of(
        [feed.subscription(number) for number in range(30)],
        [feed.message(number) for number in range(60)],
    )
    chosen = MECHANISMS[mechanism].choose(4, sample)
    again = MECHANISMS[mechanism].decoded(4, json.loads(json.dumps(chosen.encoded())))
    everywhere = [True] * len(sample.subscriptions.words)
    assert balance_of(again, sample, everywhere) == balance_of(chosen, sample, everywhere)


def test_subscriptions_are_placed_without_decoding_the_division_for_each_block(monkeypatch):
    feed = RandomFeed(2)
    chosen = Prefix.choose(2, sample_of(feed.subscriptions(30), feed.messages(60)))
    options = {"area": AREA, "window": WindowSize(count=10), "subscription_index": "sq-plus-tree"}
    plan = Plan.begin(chosen, mechanism="prefix", partitions=2, keys=(5, 6), **options)
    route = subscriptions_router(plan)
    monkeypatch.setattr(Plan, "make_distribution", None)
    schema = SUBSCRIPTIONS.append(pa.field(SOURCE, pa.string()))
    batches = [pa.RecordBatch.from_pylist(feed.subscriptions(20), schema) for _ in range(2)]
    assert {*pa.Table.from_batches(route(batches))["key"].to_pylist()} == {5, 6}


def test_nothing_to_look_at_divides_by_digests():
    nothing = sample_of([], [])
    for mechanism in ("keyword", "prefix", *HYBRIDS):
        chosen = MECHANISMS[mechanism].choose(4, nothing)
        words = [f"word{number}" for number in range(200)]
        parts, rank = chosen.look_up(np.ascontiguousarray(digests(words)[:, 0]))
        assert set(rank.tolist()) == {UNKNOWN}
        assert all(set(row.tolist()) == set(range(row.max() + 1)) for row in parts)


# -- how alike costs are -----------------------------------------------------------------------------

_SIZE = 3_000
_VOCABULARY = 5_000
_LIMITS = {"hashing": 1.05, "location": 1.05}
_LIMIT_OF_KEYWORDS = 1.3


@pytest.fixture(scope="module")
def zipf():
    """Messages whose words are as frequent as Zipf's law says, subscriptions with some of a message's."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(_VOCABULARY)]
    shares = [1.0 / (1 + number) for number in range(_VOCABULARY)]
    feed = RandomFeed(1)
    messages = [
        feed.message(number) | {"keywords": sorted({*rng.choices(words, shares, k=9)}), "ttl_ms": None}
        for number in range(_SIZE)
    ]
    subscriptions = []
    for number in range(_SIZE):
        like = rng.choice(messages)
        own = rng.sample(like["keywords"], min(len(like["keywords"]), rng.randint(1, 5)))
        place = {"lon": like["lon"], "lat": like["lat"]}
        subscriptions.append(feed.subscription(number) | {"keywords": own, **place})
    plan = Plan("", AREA, WindowSize(count=_SIZE), "prefix", 4, None, (0,), "sq-plus-tree")
    return with_reaches(sample_of(subscriptions, messages), plan.engine_options(), 1.0)


def in_prefix(sample, vocabulary):
    """Whether each keyword of a subscription is in its loose prefix: in Python, from the definition."""
    block = sample.subscriptions
    ranks = vocabulary.ranks(block.high)[block.words].tolist()
    found = [False] * len(ranks)
    for row, (start, end) in enumerate(zip(block.offsets, block.offsets[1:], strict=False)):
        own = sorted(range(start, end), key=lambda at: (ranks[at], at))
        least = 1.0 - sample.reach_m[row] / block.weight_m[row]
        for place, at in enumerate(own):
            found[at] = best_similarity(block, row, own, own[place:]) >= least - 1e-9
    return found


def best_similarity(block, row, own, shared):
    """The greatest similarity of a text that shares these keywords of a subscription and no others."""
    similarity = Similarity(int(block.similarity[row]))
    if similarity is Similarity.JACCARD:
        return len(shared) / len(own)
    if similarity is Similarity.DICE:
        return 2.0 * len(shared) / (len(own) + len(shared))
    is_weighted = similarity is Similarity.TFIDF
    squares = {at: block.square[block.words[at]] if is_weighted else 1.0 for at in own}
    return math.sqrt(sum(squares[at] for at in shared) / sum(squares.values()))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_partitions_cost_alike(mechanism, zipf):
    given = zipf if needs_reaches(mechanism) else Sample(zipf.subscriptions, zipf.messages)
    chosen = MECHANISMS[mechanism].choose(4, given)
    prefixes = in_prefix(zipf, Vocabulary.of(zipf))
    assert 0.1 < sum(prefixes) / len(prefixes) < 0.99
    found = balance_of(chosen, zipf, prefixes)
    assert found.cost_max_mean <= _LIMITS.get(mechanism, _LIMIT_OF_KEYWORDS)
