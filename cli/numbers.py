"""Numbers of options and arguments."""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A number within limits. click's own type accepts NaN, which no comparison refuses."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the option."""
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


class NumberWithHint(click.IntRange):
    """A number within limits. The error for a name in its place explains how to pass a name."""

    def __init__(self, least: int, most: int, hint: str) -> None:
        super().__init__(least, most)
        self._hint = hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Convert the text of the argument."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is not a number; {self._hint}", param, ctx)
        return super().convert(value, param, ctx)


OBJECT_ID = NumberWithHint(1, 2**63 - 1, "the key of an object is given as --key KEY")
