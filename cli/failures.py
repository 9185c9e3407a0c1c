"""Errors of the rooms below as one line for people and an exit status of 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from pydantic import ValidationError

from nearcast.errors import NearcastError


@contextmanager
def reported(*expected: type[Exception]) -> Iterator[None]:
    """Turn expected errors into click's."""
    try:
        yield
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(part) for part in one['loc']) or 'settings'}: {one['msg']} "
            f"(got {one['input']!r})"
            for one in error.errors()
        ]
        raise click.ClickException("\n".join(lines)) from None
    except NearcastError as error:
        raise click.ClickException(str(error)) from None
    except expected as error:
        raise click.ClickException(str(error)) from None
