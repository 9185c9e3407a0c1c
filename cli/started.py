"""A process of this command line, for as long as a block runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click

from cli import tied

_STOP_S = 15.0


class Started(NamedTuple):
    """A process that listens."""

    address: str
    process: subprocess.Popen[str]


@contextlib.contextmanager
def started(
    name: str, ready: str, *arguments: str, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a subcommand as a separate process; yield its address. See `started_process`."""
    with started_process(name, ready, *arguments, variables=variables) as found:
        yield found.address


@contextlib.contextmanager
def started_process(
    name: str, ready: str, *arguments: str, variables: Mapping[str, str] | None = None
) -> Iterator[Started]:
    """Run a subcommand as a separate process; end it with the block, or with this process.

    Parameters
    ----------
    name
        The subcommand.
    ready
        The start of the line with which it reports that it listens.
    arguments
        Its arguments.
    variables
        Variables of its environment, in addition to those of this process. With them it is in a process
        group of its own: Ctrl-C interrupts this process only, which then ends the other one.

    Yields
    ------
    Started
        The rest of that line, which is the address, and the process.

    Raises
    ------
    click.ClickException
        If it ends before it listens.
    """
    tied_to_this = [sys.executable, tied.__file__, str(os.getpid())]
    command = [*tied_to_this, sys.executable, "-m", "cli", name, *arguments]
    with subprocess.Popen(  # noqa: S603 - ourselves
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=None if variables is None else {**os.environ, **variables},
        process_group=None if variables is None else 0,
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(ready):
                raise click.ClickException(f"the {name} process did not start; see its message above")
            yield Started(line.removeprefix(ready).strip(), process)
        finally:
            process.terminate()
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_S)
            finally:  # also if a second signal interrupts this process
                process.kill()
