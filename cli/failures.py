"""Convert errors of other packages to one line for people and an exit status: 2 for wrong use, else 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


class WrongUseError(click.ClickException):
    """An argument is invalid. The exit status is that of options that click itself refuses."""

    exit_code = 2


_HINTS = {
    "UNAUTHENTICATED": "give one with --token-file or NEARCAST_TOKEN_FILE",
    "PERMISSION_DENIED": "--token-file or NEARCAST_TOKEN_FILE names the file of another token",
}
"""What to do, by the reason of a server's refusal."""


@contextmanager
def refused(*expected: type[Exception]) -> Iterator[None]:
    """Convert the expected errors to `WrongUseError`."""
    try:
        yield
    except expected as error:
        raise WrongUseError(str(error)) from None


@contextmanager
def reported(*expected: type[Exception]) -> Iterator[None]:
    """Convert the expected errors to `click.ClickException`."""
    try:
        yield
    except expected as error:
        name = getattr(getattr(error, "reason", None), "name", "")
        hint = _HINTS.get(name, "")
        raise click.ClickException(f"{error}; {hint}" if hint else str(error)) from None
