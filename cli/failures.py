"""Errors of the rooms below as one line for people, and an exit status: 2 for a wrong use, else 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


class WrongUseError(click.ClickException):
    """What was given cannot be used: the same exit status as of options that click itself refuses."""

    exit_code = 2


@contextmanager
def refused(*expected: type[Exception]) -> Iterator[None]:
    """Turn errors in what was given into click's."""
    try:
        yield
    except expected as error:
        raise WrongUseError(str(error)) from None


@contextmanager
def reported(*expected: type[Exception]) -> Iterator[None]:
    """Turn expected errors into click's."""
    try:
        yield
    except expected as error:
        raise click.ClickException(str(error)) from None
