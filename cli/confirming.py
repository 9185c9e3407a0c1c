"""What commands that delete data of a server do before they delete it."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from cli.failures import WrongUseError

if TYPE_CHECKING:
    from nearcast import Client


async def require_server(client: Client) -> None:
    """Fail at once if there is no server: the SDK repeats a deletion for longer than a command waits."""
    from nearcast import RefusedError  # noqa: PLC0415

    with contextlib.suppress(RefusedError):  # a token without the role for it: there is a server
        await client.status()


def confirm(question: str) -> None:
    """Ask on the terminal; end the command unless the answer is yes.

    Raises
    ------
    click.Abort
        If the answer is no.
    WrongUseError
        If there is no terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise WrongUseError("there is no terminal to ask on: --yes is absent, must be given to confirm")
    click.confirm(question, abort=True)
