"""Lines on standard output with which servers and gateways report where they listen."""

from __future__ import annotations

import os
import sys

import click

METRICS = "metrics on "
"""Start of the line with the address of the metrics port."""


def announce(ready: str, host: str, port: int) -> None:
    """Write the line with the address of a port, after its start."""
    write_line(f"{ready}{_address(host, port)}")


def announce_metrics(host: str, port: int) -> None:
    """Write the line with the address of a metrics port."""
    write_line(f"{METRICS}http://{_address(host, port)}/metrics")


def _address(host: str, port: int) -> str:
    from nearcast.address import joined_address  # noqa: PLC0415

    return joined_address(host, port)


def write_line(line: str) -> None:
    """Write a line to standard output, unless its reader has left.

    The program that starts a server may close its end of the pipe as soon as it knows the port.
    """
    try:
        click.echo(line)
    except BrokenPipeError:
        # Python writes what is left once more when it exits, and would end with status 120.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
