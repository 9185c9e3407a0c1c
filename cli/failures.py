"""Errors of the rooms below as one line for people and an exit status of 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def reported(*expected: type[Exception]) -> Iterator[None]:
    """Turn expected errors into click's."""
    try:
        yield
    except expected as error:
        raise click.ClickException(str(error)) from None
