"""The checks of arrays decide as those of single values do, near every limit."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from feeds.schemas import BOOLEAN, MESSAGES, PUBLISH, SUBSCRIBE, SUBSCRIPTIONS, TOP_K
from nearcast import canonical
from nearcast.checks import check_covered, checked_keywords, checked_position
from nearcast.errors import RefusedError
from nearcast.expressions import clauses_of
from nearcast.limits import DEFAULT_LIMITS as LIMITS
from nearcast.spec_checks import checked_boolean, checked_top_k
from safe_region.earth.shapes import Bounds, Circle
from safe_region.scoring.formulas import Similarity
from streaming.arrays.reading import read_messages, read_subscriptions
from tests.streaming.feed import AREA, FRAME
from tests.support.amounts import named, seeds

ROWS = 150


def near(chance, *limits):
    """Return a limit, the next number on either side of it, or a number far from it."""
    limit = chance.choice(limits)
    beside = math.nextafter(limit, chance.choice((-math.inf, math.inf)))
    return chance.choice((limit, beside, beside, limit * 1.5 + 0.1, math.nan, math.inf))


def mostly(chance, usual, unusual):
    return unusual() if chance.random() < 0.15 else usual


def keyword(chance):
    length = LIMITS.keyword_length_max
    odd = ("", " ", "\x00", "Tea", "TEA ", "ﷺ" * 4, "ß" * 32, "ß" * 33, "x" * length, "x" * (length + 1))
    return mostly(chance, f"word{chance.randrange(100)}", lambda: chance.choice(odd))


def keywords(chance, count_max):
    """Return few keywords, as many as are allowed or one more, or spellings of one of them."""
    count = mostly(chance, chance.randint(1, 3), lambda: chance.choice((0, count_max, count_max + 1)))
    words = [mostly(chance, f"word{i}", lambda: keyword(chance)) for i in range(count)]
    return words + chance.choice(([], [], words[:1] * chance.choice((1, count_max, 8 * count_max))))


def position(chance):
    lon = mostly(chance, chance.uniform(12.0, 12.2), lambda: near(chance, *AREA[::2]))
    return lon, mostly(chance, chance.uniform(55.0, 55.1), lambda: near(chance, *AREA[1::2]))


def message(chance, number):
    lon, lat = position(chance)
    words = keywords(chance, LIMITS.object_keywords_max)
    own = {
        "action": PUBLISH,
        "object_id": number,
        "time_ms": 5,
        "lon": lon,
        "lat": lat,
        "keywords": words,
    }
    return dict.fromkeys(MESSAGES.names) | own


def subscription(chance, number):
    lon, lat = position(chance)
    own = {"action": SUBSCRIBE, "subscription_id": number, "time_ms": 5, "lon": lon, "lat": lat}
    draw = chance.choice((top_k, boolean))
    return dict.fromkeys(SUBSCRIPTIONS.names) | own | draw(chance)


def top_k(chance):
    return {
        "kind": TOP_K,
        "keywords": keywords(chance, LIMITS.subscription_keywords_max),
        "k": mostly(chance, 5, lambda: chance.choice((-1, 0, 1, LIMITS.k_max, LIMITS.k_max + 1))),
        "alpha": mostly(chance, 0.5, lambda: near(chance, LIMITS.alpha_min, LIMITS.alpha_max)),
        "similarity": chance.choice(list(Similarity)).name.lower(),
    }


def boolean(chance):
    count = mostly(chance, 2, lambda: LIMITS.clause_keywords_max + chance.randrange(2))
    words = " AND ".join(f"word{i}" for i in range(count))
    long = "x" * (LIMITS.keyword_length_max + chance.randrange(2))
    clauses = " OR ".join(f"alternative{i}" for i in range(LIMITS.clauses_max + chance.randrange(2)))
    odd = (long, f"tea AND NOT {long}", clauses, "tea AND", "tea AND NOT tea")
    where = chance.choice((circle, box))
    return {
        "kind": BOOLEAN,
        "expression": mostly(chance, words, lambda: chance.choice(odd)),
        **where(chance),
    }


def circle(chance):
    return {"radius_m": mostly(chance, 100.0, lambda: near(chance, 0.0, LIMITS.range_m_max))}


def box(chance):
    west, south = 12.0, 55.0
    width = mostly(chance, 0.1, lambda: near(chance, 0.0, 2.0 * LIMITS.range_m_max / FRAME.x_m_per_deg))
    height = mostly(chance, 0.1, lambda: near(chance, 0.0, 2.0 * LIMITS.range_m_max / FRAME.y_m_per_deg))
    return {"bounds": [west, south, west + width, south + height]}


def require_valid_message(row):
    """Apply the plain checks of an object to a row."""
    check_covered(FRAME, checked_position(row["lon"], row["lat"]), "position")
    counts = LIMITS.object_keywords_max, LIMITS.keyword_length_max
    checked_keywords(row["keywords"], "keywords", *counts)


def require_valid_subscription(row):
    """Apply the plain checks of a spec to a row, and the rule of the job that places are in its area."""
    place = row["lon"], row["lat"]
    if row["kind"] == TOP_K:
        check_covered(FRAME, place, "position")
        similarity = Similarity[row["similarity"].upper()]
        spec = canonical.TopK(tuple(row["keywords"]), row["k"], row["alpha"], similarity)
        checked_top_k(spec, LIMITS)
        return
    if row["radius_m"] is None:
        where = Bounds(*row["bounds"])
    else:
        check_covered(FRAME, place, "position")
        where = Circle(row["radius_m"], place)
    clauses = tuple(
        canonical.Clause(tuple(clause.required), tuple(clause.excluded))
        for clause in clauses_of(row["expression"])
    )
    checked_boolean(canonical.Boolean(clauses, where, is_moving=False), LIMITS, FRAME)


def refused(rows, require_valid):
    """Return the indexes of the rows that the plain checks refuse."""
    found = []
    for i, row in enumerate(rows):
        try:
            require_valid(row)
        except RefusedError:
            found.append(i)
    return found


@pytest.mark.parametrize(
    ("draw", "schema", "read", "require_valid"),
    [
        (message, MESSAGES, read_messages, require_valid_message),
        (subscription, SUBSCRIPTIONS, read_subscriptions, require_valid_subscription),
    ],
    ids=["messages", "subscriptions"],
)
@pytest.mark.parametrize("part", seeds(20, part=10), ids=named)
def test_arrays_are_checked_as_single_values_are(part, draw, schema, read, require_valid):
    outcomes = set()
    for seed in part:
        chance = random.Random(seed)
        rows = [draw(chance, number) for number in range(ROWS)]
        block, refusals = read(pa.RecordBatch.from_pylist(rows, schema), FRAME, lambda _: 1.0)
        expected = refused(rows, require_valid)
        differing = [rows[i] for i in {*refusals.rows.tolist()} ^ {*expected}]
        assert not differing, (seed, differing[0])
        assert len(block) == ROWS - len(expected)
        outcomes |= {i in expected for i in range(ROWS)}
    assert outcomes == {True, False}


def test_spellings_of_a_keyword_count_as_one():
    spellings = ["Tea", "TEA", "tea ", *(f"word{i}" for i in range(LIMITS.object_keywords_max - 1))]
    own = {"action": PUBLISH, "object_id": 1, "time_ms": 5, "lon": 12.1, "lat": 55.05}
    row = dict.fromkeys(MESSAGES.names) | own | {"keywords": spellings}
    require_valid_message(row)
    block, refusals = read_messages(pa.RecordBatch.from_pylist([row], MESSAGES), FRAME, lambda _: 1.0)
    assert (len(block), len(refusals.rows)) == (1, 0)
    more = row | {"keywords": [*spellings, "one more"]}
    _, refusals = read_messages(pa.RecordBatch.from_pylist([more], MESSAGES), FRAME, lambda _: 1.0)
    assert refusals.reasons == [f"keywords must be 1 to {LIMITS.object_keywords_max} keywords"]


def test_a_range_without_width_is_refused():
    own = {"action": SUBSCRIBE, "subscription_id": 1, "time_ms": 5, "kind": BOOLEAN, "expression": "tea"}
    row = dict.fromkeys(SUBSCRIPTIONS.names) | own | {"bounds": [12.1, 55.0, 12.1, 55.1]}
    assert refused([row], require_valid_subscription) == [0]
    _, refusals = read_subscriptions(
        pa.RecordBatch.from_pylist([row], SUBSCRIPTIONS), FRAME, lambda _: 1.0
    )
    assert refusals.rows.tolist() == [0]


@pytest.mark.parametrize("column", ["action", "kind"])
def test_a_text_with_a_nul_at_its_end_is_another_one(column):
    for draw, schema, read in (
        (message, MESSAGES, read_messages),
        (subscription, SUBSCRIPTIONS, read_subscriptions),
    ):
        row = draw(random.Random(1), 1)
        if column in row:
            batch = pa.RecordBatch.from_pylist([row | {column: f"{row[column]}\0"}], schema)
            block, refusals = read(batch, FRAME, lambda _: 1.0)
            assert (len(block), refusals.rows.tolist()) == (0, [0])
            assert f"{column} must be" in refusals.reasons[0]
