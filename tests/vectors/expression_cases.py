"""Texts of expressions: clauses, or the position of the mistake."""

from __future__ import annotations

_TEXTS = (
    "coffee",
    "Coffee AND wifi",
    'coffee AND (wifi OR garden) AND NOT "live music"',
    "a OR a AND b",
    "a AND NOT a OR b",
    "NOT (NOT a OR b)",
    "NOT NOT a",
    "(a OR b) AND (c OR d) AND (e OR a)",
    "(a OR NOT b) AND b AND NOT c",
    '"AND" OR "a \\" b" OR "\\\\"',
    "((((a))))",
    "b OR a",
    "aa OR a",
    "a AND b OR b AND a OR B AND A",
    "   a\n\tAND  b ",
    "é OR É OR e\u0301",
    "😀 AND 𝓪",
    "😀 𝓪",
    "\uffee OR 😀",
    "",
    "   ",
    "a b",
    "a and b",
    "a AND",
    "AND a",
    "a OR OR b",
    "(a",
    "(a OR (b AND c)",
    "a)",
    "()",
    '"a',
    '"" AND a',
    '"a\\b"',
    "“a”",
    "a AND «b»",
    "NOT a",
    "a OR NOT b",
    "a NOT b",
    "a AND NOT a",
    "and OR b c",
    '"a\x07b"',
    "(" * 51 + "a" + ")" * 51,
    "(" * 50 + "a" + ")" * 50,
    "a" * 4097,
    " AND ".join(f"(a{i} OR b{i})" for i in range(6)),
    " AND ".join(f"(a{i} OR b{i})" for i in range(7)),
    " AND ".join(f"(a{i} OR b{i})" for i in range(13)),
)


def cases():
    steps = [{"op": "clauses", "text": one} for one in _TEXTS]
    yield {"name": "texts", "given": {}, "steps": steps}
