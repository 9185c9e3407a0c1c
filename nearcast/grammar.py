r"""The grammar of expressions: a text to a tree, or an error with the position.

| in a text | means |
|---|---|
| `coffee` | a keyword: printable characters without blanks, parentheses and quotes |
| `"live music"`, `"NOT"`, `"a \" b"` | a keyword in quotes; before a quote or a backslash, a backslash |
| `a AND b` | both; upper case, for `and` is a keyword like any other |
| `a OR b` | at least one; AND binds tighter |
| `NOT a` | not this one; binds tighter than AND |
| `( )` | what is inside is taken first |

The parser is lark's, LALR, so a text takes time linear in its length. It is imported when the first text
comes (the extra `expressions`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, cast

from nearcast.errors import NearcastError, RefusedError, invalid
from safe_region.extras import how_to_install
from safe_region.keywords import normalised_keyword

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node = Tree[Token] | Token
    """`any` and `all` have parts, `negated` has its NOTs and one part; tokens are keywords."""

FIELD = "spec.boolean.expression"
TEXT_LENGTH_MAX = 4096
NESTING_MAX = 50
"""Parentheses in each other."""

_SHOWN = 30
"""Characters of a text that an error shows before and after the position."""

_WORD = r'[^\s()"\u201c-\u201f\u00ab\u00bb\uff02\uff08\uff09]+'
"""Curly, angle and wide quotes and wide parentheses are refused, not taken for letters: phones put them
in by themselves, and nobody would find out why nothing matches."""

_GRAMMAR = rf"""
?any: all (_OR all)*
?all: negated (_AND negated)*
?negated: NOT* operand
?operand: "(" any ")" | WORD | QUOTED
_AND: "AND"
_OR: "OR"
NOT: "NOT"
WORD: /{_WORD}/
QUOTED: /"(\\.|[^"\\])*"/s
%ignore /\s+/
"""

_OPERATORS = ("AND", "OR", "NOT")

_NAMES = {
    "WORD": "a keyword",
    "NOT": "NOT",
    "LPAR": "(",
    "_AND": "AND",
    "_OR": "OR",
    "RPAR": ")",
    "$END": "the end",
}
"""Of what may come next, for people and in this order."""


def parsed(text: str) -> Node:
    """Return the tree of a text. It is as deep as its parentheses, however many operators there are.

    Raises
    ------
    RefusedError
        The text is not well-formed, or too large.
    NearcastError
        The parser is not installed.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise invalid(FIELD, excerpt(text), f"at most {TEXT_LENGTH_MAX} characters, not {len(text)}")
    parse = _parser().parse_interactive(text)
    from lark import UnexpectedCharacters, UnexpectedToken  # noqa: PLC0415

    tokens: list[Token] = []
    opened: list[int] = []
    try:
        for token in parse.iter_parse():
            tokens.append(token)
            if token.type == "LPAR":
                opened.append(position(token))
                if len(opened) > NESTING_MAX:
                    what = f"expected at most {NESTING_MAX} parentheses in each other"
                    raise refused(text, opened[-1], what)
            elif token.type == "RPAR" and opened:
                opened.pop()
        return cast("Node", parse.feed_eof(tokens[-1] if tokens else None))
    except UnexpectedCharacters as error:
        raise _unexpected_character(text, error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        before = tokens if error.token.type == "$END" else tokens[:-1]
        raise _unexpected_token(text, error.token, before, opened) from None


def position(token: Token) -> int:
    """Return the index of a token in its text."""
    return token.start_pos or 0


def keyword_of(token: Token, text: str) -> str:
    """Return the normalised keyword that a token of a text stands for."""
    at = position(token)
    keyword = normalised_keyword(token if token.type == "WORD" else _unquoted(token, text))
    if not keyword:
        raise refused(text, at, "expected a keyword in the quotes")
    if not keyword.isprintable():
        raise refused(text, at, "expected a keyword of printable characters")
    return keyword


def keyword_text(keyword: str) -> str:
    """Return a keyword as it stands in a text, in quotes where it needs them."""
    if re.fullmatch(_WORD, keyword) and keyword not in _OPERATORS:
        return keyword
    escaped = re.sub(r'(["\\])', r"\\\1", keyword)
    return f'"{escaped}"'


def refused(text: str, at: int, what: str, must: str = "well-formed") -> RefusedError:
    """Refuse a text for what is wrong at an index. People count characters from 1."""
    return invalid(FIELD, excerpt(text, at), f"{must}; at character {at + 1}: {what}")


def excerpt(text: str, at: int = 0) -> str:
    """Return the part of a text around an index."""
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


@cache
def _parser() -> Lark:
    try:
        from lark import Lark  # noqa: PLC0415
    except ImportError:
        raise NearcastError(
            "a text as the expression of a boolean subscription needs a parser: "
            f"{how_to_install('expressions')}, or give keywords or clauses"
        ) from None
    # A lexer that knows what may come next would take an operator for a keyword where none may come.
    return Lark(_GRAMMAR, start="any", parser="lalr", lexer="basic")


def _unquoted(token: Token, text: str) -> str:
    for escape in re.finditer(r"\\(.)", token, re.DOTALL):
        if escape[1] not in {'"', "\\"}:
            at = position(token) + escape.start()
            raise refused(text, at, "expected a quote or a backslash after the backslash")
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _unexpected_character(text: str, at: int) -> RefusedError:
    if text[at] == '"':
        return refused(text, at, "expected another quote that closes this one")
    return refused(text, at, 'expected plain quotes (") and parentheses')


def _unexpected_token(text: str, token: Token, before: list[Token], opened: list[int]) -> RefusedError:
    """Say what may come instead, and what was probably meant."""
    # Anew, for the parser that found the error has already closed what the token cannot belong to.
    parse = _parser().parse_interactive("")
    for one in before:
        parse.feed_token(one)
    accepted = parse.accepts()
    names = [name for terminal, name in _NAMES.items() if terminal in accepted]
    expected = f"expected {', '.join(names[:-1])} or {names[-1]}"
    if token.type == "$END":
        is_open = opened and "RPAR" in accepted
        closing = f" for the ( at character {opened[-1] + 1}" if is_open else ""
        return refused(text, len(text), expected + closing)
    if "_AND" in accepted:
        words = [str(one) for one in (before[-1], token) if one.type == "WORD"]
        if any(word.upper() in _OPERATORS for word in words):
            expected += "; operators are in upper case"
        elif token.type == "NOT":
            expected += "; write AND NOT"
        elif token.type in {"WORD", "QUOTED"}:
            expected += "; put AND between keywords, or quotes around one that has blanks"
    return refused(text, position(token), expected)
