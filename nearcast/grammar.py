r"""Parse the text of an expression to a tree, or raise an error with the position of the mistake.

| text | meaning |
|---|---|
| `coffee` | a keyword: printable characters without blanks, parentheses and quotes |
| `"live music"`, `"NOT"`, `"a \" b"` | a keyword in quotes; a backslash escapes a quote or a backslash |
| `a AND b` | both; in upper case, since `and` is a keyword |
| `a OR b` | at least one; AND binds tighter |
| `NOT a` | the keyword is absent; binds tighter than AND |
| `( )` | the expression in parentheses is evaluated first |

The parser is a recursive descent parser. It takes time linear in the length of the text, and accepts at
most `NESTING_MAX` nested parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from nearcast.errors import RefusedError, invalid
from nearcast.limits import EXPRESSION_LENGTH_MAX
from safe_region.scoring.keywords import normalised_keyword

FIELD = "spec.boolean.expression"
NESTING_MAX = 50
"""Largest number of nested parentheses."""

_SHOWN = 30
"""Number of characters that an error shows before and after the position."""

_WORD = r'[^\s()"\u201c-\u201f\u00ab\u00bb\uff02\uff08\uff09]+'
"""Characters of a keyword without quotes. Curly, angle and wide quotes and wide parentheses are refused:
phones insert them by themselves, and as letters they would make an expression that matches nothing."""


class Terminal(Enum):
    """Type of a token. The values are for people."""

    WORD = "a keyword"
    QUOTED = "a keyword in quotes"
    NOT = "NOT"
    OPEN = "("
    AND = "AND"
    OR = "OR"
    CLOSE = ")"
    END = "the end"


_OPERATORS = {one.value: one for one in (Terminal.AND, Terminal.OR, Terminal.NOT)}

_TOKEN = re.compile(
    rf"""\s*(?:(?P<WORD>{_WORD})|(?P<QUOTED>"(?:\\.|[^"\\])*")|(?P<OPEN>\()|(?P<CLOSE>\)))""", re.DOTALL
)
_BLANKS = re.compile(r"\s*")


class Token(NamedTuple):
    """A keyword, an operator or a parenthesis."""

    terminal: Terminal
    text: str
    """Text of the token in the expression, quotes included."""
    at: int
    """Index of the first character."""


class Negated(NamedTuple):
    """A part of an expression after an odd number of NOTs."""

    at: int
    """Index of the last NOT."""
    part: Node


class Joined(NamedTuple):
    """Two or more parts, joined by AND (`is_all`) or by OR."""

    is_all: bool
    parts: list[Node]


Node = Token | Negated | Joined
"""A token is a keyword."""


def parsed(text: str) -> Node:
    """Return the tree of a text. Its depth depends on the parentheses, not on the number of operators.

    Raises
    ------
    RefusedError
        If the text is not well-formed, or is too large.
    """
    if len(text) > EXPRESSION_LENGTH_MAX:
        raise invalid(
            FIELD, excerpt(text), f"at most {EXPRESSION_LENGTH_MAX} characters, not {len(text)}"
        )
    return _Parser(text).tree()


def has_operator(text: str) -> bool:
    """Return whether AND, OR or NOT is a word of a text, in capitals."""
    return not _OPERATORS.keys().isdisjoint(text.split())


def keyword_of(token: Token, text: str) -> str:
    """Return the normalised keyword of a token."""
    written = token.text if token.terminal is Terminal.WORD else _unquoted(token, text)
    keyword = normalised_keyword(written)
    if not keyword:
        raise refused(text, token.at, "expected a keyword in the quotes")
    if not keyword.isprintable():
        raise refused(text, token.at, "expected a keyword of printable characters")
    return keyword


def keyword_text(keyword: str) -> str:
    """Format a keyword for an expression, in quotes if it needs them."""
    if re.fullmatch(_WORD, keyword) and keyword not in _OPERATORS:
        return keyword
    escaped = re.sub(r'(["\\])', r"\\\1", keyword)
    return f'"{escaped}"'


def refused(text: str, at: int, what: str, must: str = "well-formed") -> RefusedError:
    """Return the error for a mistake at an index of a text. The message counts characters from 1."""
    return invalid(FIELD, excerpt(text, at), f"{must}; at character {at + 1}: {what}")


def excerpt(text: str, at: int = 0) -> str:
    """Return the part of a text around an index."""
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


class _Parser:
    """Parses one text.

    any      all (OR all)*
    all      negated (AND negated)*
    negated  NOT* operand
    operand  "(" any ")" | WORD | QUOTED
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._opened: list[int] = []
        """Indexes of the parentheses that are not closed yet."""
        self._before: Token | None = None
        self._next = next(self._tokens)

    def tree(self) -> Node:
        found = self._any()
        if self._next.terminal is not Terminal.END:
            raise self._unexpected_after_operand()
        return found

    def _any(self) -> Node:
        parts = [self._all()]
        while self._next.terminal is Terminal.OR:
            self._advance()
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Joined(is_all=False, parts=parts)

    def _all(self) -> Node:
        parts = [self._negated()]
        while self._next.terminal is Terminal.AND:
            self._advance()
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else Joined(is_all=True, parts=parts)

    def _negated(self) -> Node:
        at, count = 0, 0
        while self._next.terminal is Terminal.NOT:
            at, count = self._next.at, count + 1
            self._advance()
        part = self._operand()
        return Negated(at, part) if count % 2 else part

    def _operand(self) -> Node:
        token = self._next
        if token.terminal is Terminal.OPEN:
            return self._parenthesised()
        if token.terminal not in {Terminal.WORD, Terminal.QUOTED}:
            raise refused(self._text, token.at, "expected a keyword, NOT or (")
        self._advance()
        return token

    def _parenthesised(self) -> Node:
        at = self._next.at
        self._opened.append(at)
        if len(self._opened) > NESTING_MAX:
            what = f"expected at most {NESTING_MAX} nested parentheses"
            raise refused(self._text, at, what)
        self._advance()
        found = self._any()
        if self._next.terminal is not Terminal.CLOSE:
            raise self._unexpected_after_operand()
        self._opened.pop()
        self._advance()
        return found

    def _advance(self) -> None:
        self._before, self._next = self._next, next(self._tokens)

    def _unexpected_after_operand(self) -> RefusedError:
        """Return an error that names the expected tokens and the likely mistake."""
        token = self._next
        expected = f"expected AND, OR or {')' if self._opened else 'the end'}"
        if token.terminal is Terminal.END:
            expected += f" for the ( at character {self._opened[-1] + 1}"
        elif any(map(_is_operator_in_lower_case, (self._before, token))):
            expected += "; operators are in upper case"
        elif token.terminal is Terminal.NOT:
            expected += "; write AND NOT"
        elif token.terminal in {Terminal.WORD, Terminal.QUOTED}:
            expected += "; put AND between keywords, or quotes around a keyword with blanks"
        return refused(self._text, token.at, expected)


def _is_operator_in_lower_case(token: Token | None) -> bool:
    return token is not None and token.terminal is Terminal.WORD and token.text.upper() in _OPERATORS


def _tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, then an END token.

    Raises
    ------
    RefusedError
        At a character that cannot start a token.
    """
    at = 0
    while (found := _TOKEN.match(text, at)) is not None:
        terminal = Terminal[str(found.lastgroup)]
        written = found[terminal.name]
        yield Token(_OPERATORS.get(written, terminal), written, found.start(terminal.name))
        at = found.end()
    blanks = _BLANKS.match(text, at)
    at = blanks.end() if blanks else at
    if at < len(text):
        raise _unexpected_character(text, at)
    yield Token(Terminal.END, "", at)


def _unquoted(token: Token, text: str) -> str:
    for escape in re.finditer(r"\\(.)", token.text, re.DOTALL):
        if escape[1] not in {'"', "\\"}:
            at = token.at + escape.start()
            raise refused(text, at, "expected a quote or a backslash after the backslash")
    return re.sub(r"\\(.)", r"\1", token.text[1:-1])


def _unexpected_character(text: str, at: int) -> RefusedError:
    if text[at] == '"':
        return refused(text, at, "expected a closing quote")
    return refused(text, at, 'expected plain quotes (") and parentheses')
