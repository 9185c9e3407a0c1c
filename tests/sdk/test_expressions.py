"""Expressions against their meaning, word for word; what is refused, and where."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast import Reason, RefusedError
from nearcast.expressions import clauses_of, text_of
from nearcast.model import Clause
from safe_region.scoring.keywords import normalised_keyword
from tests.support.amounts import examples

WORDS = ["coffee", "live music", "and", 'say "a"', "back\\slash"]
SUBSETS = [frozenset(some) for n in range(len(WORDS) + 1) for some in combinations(WORDS, n)]

trees = st.recursive(
    st.sampled_from(WORDS),
    lambda inner: st.one_of(
        st.tuples(st.just("NOT"), inner),
        st.tuples(st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=4)),
    ),
    max_leaves=14,
)


def clause(required, excluded=()):
    return Clause(frozenset(required), frozenset(excluded))


def holds(tree, keywords):
    if isinstance(tree, str):
        return tree in keywords
    operator, parts = tree
    if operator == "NOT":
        return not holds(parts, keywords)
    return (all if operator == "AND" else any)(holds(part, keywords) for part in parts)


def matches(clauses, keywords):
    return any(one.required <= keywords and not one.excluded & keywords for one in clauses)


class Writer:
    """Writes a tree, with blanks, cases, quotes and parentheses that change nothing."""

    def __init__(self, rng):
        self._rng = rng

    def text(self, tree, binds=0):
        blank = self._rng.choice([" ", " ", "  ", "\n\t", "\u3000"])
        if isinstance(tree, str):
            body, own = self._keyword(tree), 3
        elif tree[0] == "NOT":
            body, own = f"NOT{blank}{self.text(tree[1], 2)}", 2
        else:
            own = 1 if tree[0] == "AND" else 0
            body = f"{blank}{tree[0]} ".join(self.text(part, own + 1) for part in tree[1])
        return f"({body}{blank})" if own < binds or self._rng.random() < 0.1 else body

    def _keyword(self, word):
        cased = self._rng.choice([word, word.title()])
        if '"' not in word and " " not in word and self._rng.random() < 0.7:
            return cased
        escaped = cased.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


@given(trees, st.randoms(use_true_random=False))
@settings(max_examples=examples(500), deadline=None)
def test_clauses_have_the_meaning_of_the_text(tree, rng):
    text = Writer(rng).text(tree)
    found = [keywords for keywords in SUBSETS if holds(tree, keywords)]
    if not found or frozenset() in found:
        # Nothing matches; or what has no keywords does, so that some clause requires none.
        with pytest.raises(RefusedError) as refused:
            clauses_of(text)
        assert ("can match" if not found else "requires a keyword") in refused.value.limit
        return
    clauses = clauses_of(text)
    assert [keywords for keywords in SUBSETS if matches(clauses, keywords)] == found
    for one in clauses:
        assert not one.required & one.excluded
    for one in clauses:
        for other in clauses:
            implies = one.required >= other.required and one.excluded >= other.excluded
            assert not implies or one is other
    assert list(clauses) == sorted(clauses, key=lambda c: (sorted(c.required), sorted(c.excluded)))
    assert clauses_of(text_of(clauses)) == clauses
    assert clauses_of(set(clauses)) == clauses


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4))
@settings(max_examples=examples(500), deadline=None)
def test_any_printable_keyword_can_be_written(given_keywords):
    keywords = {normalised_keyword(keyword) for keyword in given_keywords}
    keywords = {keyword for keyword in keywords if keyword and keyword.isprintable()}
    if keywords:
        (one,) = clauses_of(keywords)
        assert one.required == keywords
        assert clauses_of(text_of([one])) == (one,)


@given(st.text('aN"\\ ()ANDORT', max_size=30) | st.text(max_size=30))
@settings(max_examples=examples(500), deadline=None)
def test_any_text_is_read_or_refused(text):
    try:
        assert clauses_of(text)
    except RefusedError as refused:
        assert refused.field == "spec.boolean.expression"  # noqa: PT017 - both ways are right


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("b AND a", "a AND b"),
        ("a OR b AND c", "a OR b AND c"),
        ("(a OR b) AND c", "a AND c OR b AND c"),
        ("NOT a AND b", "b AND NOT a"),
        ("c AND NOT (a OR NOT b)", "b AND c AND NOT a"),
        ("c AND NOT (a AND b)", "c AND NOT a OR c AND NOT b"),
        ("NOT NOT a", "a"),
        ("NOT(a)AND b OR c", "b AND NOT a OR c"),
        ("a OR a AND b", "a"),
        ("a AND NOT b OR a AND NOT b AND NOT c", "a AND NOT b"),
        ("a AND NOT a OR b", "b"),
        ("(a OR NOT b) AND b", "a AND b"),
        ("Caf\u00e9 OR cafe\u0301 OR CAF\u00c9", "caf\u00e9"),
        ('"NOT" AND "and" AND Or', "and AND not AND or"),
        ("ANDROID OR NOTE", "android OR note"),
        (
            "l'arte AND caf\u00e9-bar AND a\\b AND \U0001f355",
            "a\\b AND caf\u00e9-bar AND l'arte AND \U0001f355",
        ),
        ('"a (b)" AND "x \\"y\\" \\\\ z"', '"a (b)" AND "x \\"y\\" \\\\ z"'),
        ({" Live Music ", "A"}, 'a AND "live music"'),
        (["a", "A"], "a"),
        ([clause("b"), clause({"A"}, {"C"}), clause("bd")], "a AND NOT c OR b"),
        ([clause("a", "a"), clause("b")], "b"),
    ],
)
def test_clauses(expression, text):
    clauses = clauses_of(expression)
    assert text_of(clauses) == text
    assert clauses_of(text) == clauses


OPERAND = "expected a keyword, NOT or ("
OPERATOR = "expected AND, OR or the end"
ALONE = "NOT only filters what is found by another keyword"
PLAIN = 'expected plain quotes (") and parentheses'


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, OPERAND),
        ("   ", 4, OPERAND),
        ("coffee AND", 11, OPERAND),
        ("coffee AND ", 12, OPERAND),
        ("AND coffee", 1, OPERAND),
        ("a OR OR b", 6, OPERAND),
        ("a AND NOT", 10, OPERAND),
        ("()", 2, OPERAND),
        ("a AND (b OR )", 13, OPERAND),
        ("a)", 2, OPERATOR),
        ("a (b)", 3, OPERATOR),
        ("green tea", 7, f"{OPERATOR}; put AND between keywords, or quotes around a keyword with blanks"),
        ('"green" tea', 9, f"{OPERATOR}; put AND"),
        ('green"tea"', 6, f"{OPERATOR}; put AND"),
        ("tea and milk", 5, f"{OPERATOR}; operators are in upper case"),
        ("tea AND Not milk", 13, f"{OPERATOR}; operators are in upper case"),
        ("tea NOT milk", 5, f"{OPERATOR}; write AND NOT"),
        ("(tea NOT milk)", 6, "expected AND, OR or ); write AND NOT"),
        ("a AND (b OR (c)", 16, "expected AND, OR or ) for the ( at character 7"),
        ("(", 2, OPERAND),
        ('a AND "b', 7, "expected a closing quote"),
        ('a AND "b\\"', 7, "expected a closing quote"),
        ('a AND "b\\n"', 9, "expected a quote or a backslash after the backslash"),
        ('a AND ""', 7, "expected a keyword in the quotes"),
        ('a AND " \t"', 7, "expected a keyword in the quotes"),
        ("a AND b\u200bc", 7, "expected a keyword of printable characters"),
        ('a AND "b\nc"', 7, "expected a keyword of printable characters"),
        ("a AND \ud800", 7, "expected a keyword of printable characters"),
        ("a AND \u201cb c\u201d", 7, PLAIN),
        ("a AND b\u201d", 8, PLAIN),
        ("\uff08a OR b\uff09", 1, PLAIN),
        ("NOT a", 1, ALONE),
        ("a OR b AND c OR NOT b", 17, ALONE),
        ("a OR NOT (b AND (c OR NOT d))", 6, ALONE),
        ("NOT (a AND NOT b)", 1, ALONE),
        ("a OR NOT a", 6, ALONE),
        (f"{'(' * 51}a{')' * 51}", 51, "expected at most 50 nested parentheses"),
        (f"{'a OR ' * 100}b c", 503, OPERATOR),
    ],
)
def test_an_error_has_the_position(text, position, expected):
    with pytest.raises(RefusedError) as refused:
        clauses_of(text)
    assert refused.value.reason is Reason.INVALID_FIELD
    assert refused.value.field == "spec.boolean.expression"
    assert f"; at character {position}: {expected}" in refused.value.limit
    assert refused.value.limit in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_an_error_shows_the_text_around_its_position():
    with pytest.raises(RefusedError) as refused:
        clauses_of(f"{'a OR ' * 100}here there{' OR b' * 100}")
    assert "here there" in refused.value.value
    assert len(refused.value.value) < 70


def product(count, of=2, name=""):
    groups = (" OR ".join(f"{name}{i}.{j}" for j in range(of)) for i in range(count))
    return " AND ".join(f"({group})" for group in groups)


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        ("a" * 4097, "at most 4096 characters, not 4097"),
        (product(7), "at most 64 clauses"),
        (product(13), "at most 64 clauses"),
        (" OR ".join(f"{i:x}" for i in range(65)), "at most 64 clauses"),
        ([clause({str(i)}) for i in range(65)], "at most 64 clauses"),
        ([clause({str(i)}) for i in range(5000)], "at most 64 clauses"),
        ("a AND NOT a", "can match"),
        ([clause("a", "a")], "can match"),
        ([clause("", "b")], "requires a keyword"),
        ([clause("a"), clause("", "b")], "requires a keyword"),
        ([clause("")], "clauses with keywords"),
        ([], "a text, keywords or clauses; it is empty"),
        (set(), "a text, keywords or clauses; it is empty"),
        (["a", clause("a")], "a text, keywords or clauses"),
        (["a", 7], "a text, keywords or clauses"),
        ([Clause("ab")], "a text, keywords or clauses"),
        ([Clause(7)], "a text, keywords or clauses"),
        ([clause([7])], "a text, keywords or clauses"),
        (b"ab", "a text, keywords or clauses"),
        (clause("a"), "a text, keywords or clauses"),
        (None, "a text, keywords or clauses"),
    ],
)
def test_expressions_refused_as_a_whole(expression, limit):
    with pytest.raises(RefusedError) as refused:
        clauses_of(expression)
    assert refused.value.field == "spec.boolean.expression"
    assert limit in refused.value.limit
    assert len(str(refused.value)) < 300


def test_as_many_clauses_as_are_allowed():
    assert len(clauses_of(product(6))) == 64
    assert len(clauses_of(product(7), clauses_max=128)) == 128
    assert len(clauses_of(product(12), clauses_max=4096)) == 4096
    with pytest.raises(RefusedError, match="at most 63 clauses"):
        clauses_of(product(6), clauses_max=63)
    # Many on the way, few at the end: what is short is taken first.
    assert len(clauses_of(f"{product(20)} AND {' AND '.join(f'{i}.0' for i in range(20))}")) == 1
    assert clauses_of(f"{'(' * 50}a{')' * 50}") == (clause("a"),)
    assert clauses_of(f"a{' ' * 4095}") == (clause("a"),)


def filled(pattern, between=" AND "):
    """Return a text of nearly 4,096 characters: as many parts as fit, made by their number."""
    text, number = pattern(0), 1
    while len(longer := text + between + pattern(number)) <= 4096:
        text, number = longer, number + 1
    return text


def drawn(size):
    rng = random.Random(size)
    words = [f"w{i}" for i in range(16)]
    return lambda _: f"({' OR '.join(rng.sample(words, size))})"


def deep(count):
    text = "a"
    for i in range(count):
        text = f"({text} OR b{i} AND c{i}) AND NOT d{i} OR NOT (e{i} AND f{i}) AND g{i}"
    return text


WORST = {
    "one OR": (filled(lambda i: f"{i:x}", " OR "), "clauses"),
    "one AND": (filled(lambda i: f"{i:x}"), None),
    "NOT NOT": ("NOT " * 1022 + "a", None),
    "NOT NOT NOT": ("NOT " * 1023 + "a", "NOT"),
    "only (": ("(" * 4096, "50 nested parentheses"),
    "only )": (")" * 4096, "keyword"),
    "wrong at the end": (filled(lambda _: "a") + " b", OPERATOR),
    "an open quote": ('"' + "a" * 4095, "closes"),
    "backslashes": ('"' + "\\" * 4094 + '"', None),
    "an open quote, backslashes": ('"' + "\\" * 4095, "closes"),
    "blanks": (" " * 4096, "keyword"),
    "pairs": (filled(lambda i: f"({i:x} OR z{i:x})"), "clauses"),
    "the same product": (filled(lambda _: f"({product(12)})"), "clauses"),
    "the same product, OR": (filled(lambda _: f"({product(11)})", " OR "), "clauses"),
    "products": (filled(lambda i: f"({product(6, name=f'w{i}.')})"), "clauses"),
    "products, OR": (filled(lambda i: f"({product(11, name=f'w{i}.')})", " OR "), "clauses"),
    "products of many": (filled(lambda i: f"({product(5, of=9, name=f'w{i}.')})"), "clauses"),
    "drawn, 2": (filled(drawn(2)), None),
    "drawn, 4": (filled(drawn(4)), ""),
    "drawn, 8": (filled(drawn(8)), ""),
    "a negated sum": ("x AND NOT (" + filled(drawn(3)).replace("AND", "&").replace("OR", "AND")
                      .replace("&", "OR")[:4000].rsplit(" OR ", 1)[0] + ")", ""),
    "deep": (deep(49), "clauses"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORST)
def test_the_worst_at_the_bounds_comes_to_an_end(name):
    """A limit of None: there are clauses; empty: either is right, for what is drawn."""
    text, limit = WORST[name]
    assert len(text) <= 4096
    try:
        clauses = clauses_of(text)
    except RefusedError as refused:
        assert limit is not None, refused  # noqa: PT017 - both ways are right
        assert limit in refused.limit  # noqa: PT017
    else:
        assert not limit
        assert len(clauses) <= 64


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("(" * 2000 + "a" + ")" * 2000, "; at character 51: expected at most 50 parentheses"),
        ("NOT (" * 600 + "a" + ")" * 600, "; at character 255: expected at most 50 parentheses"),
        ("a" * 10_000, "at most 4096 characters, not 10000"),
        ("(" * 10_000, "at most 4096 characters, not 10000"),
    ],
)
def test_deep_or_long_expressions_are_refused_without_a_recursion_error(text, limit):
    limit_before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 400)
    try:
        with pytest.raises(RefusedError) as refused:
            clauses_of(text)
    finally:
        sys.setrecursionlimit(limit_before)
    assert limit in refused.value.limit


@pytest.mark.processes
def test_a_text_needs_no_package_beside_those_of_the_sdk():
    code = """
import sys, nearcast
from nearcast.expressions import clauses_of
before = set(sys.modules)
assert clauses_of('coffee AND (wifi OR "live music")')
assert set(sys.modules) == before, set(sys.modules) - before
packages = {name.split(".")[0] for name in sys.modules}
assert not packages & {"lark", "numpy", "click", "pydantic"}, packages
"""
    subprocess.run([sys.executable, "-c", code], check=True)
