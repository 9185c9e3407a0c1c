"""docs/operations.md has the version of a store, and every command that calls a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from cli.app import app
from server.store.schema import SCHEMA_VERSION

OPERATIONS = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()


def calling_commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the commands that have the options of a server and of a token."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from calling_commands(one, (*path, name))
    elif {"server", "token_file"} <= {one.name for one in command.params}:
        yield " ".join(path)


def test_the_version_of_a_store():
    assert re.findall(r"The current version is (\d+)\.", OPERATIONS) == [str(SCHEMA_VERSION)]


def test_every_command_that_calls_a_server_is_listed():
    (listed,) = re.findall(r"All commands that call a server \((.*?)\)", OPERATIONS, re.DOTALL)
    assert re.findall(r"`(.*?)`", listed) == sorted(calling_commands(app))
