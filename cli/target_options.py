"""Which server a command asks, and how it gets in: options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from nearcast import Client

_Command = TypeVar("_Command", bound=Callable[..., object])


class Target(NamedTuple):
    """A server to be asked."""

    server: str
    token: str | None
    tls_root: Path | None

    def connect(self) -> AbstractAsyncContextManager[Client]:
        """Return what connects a client."""
        from nearcast import Tls, connect  # noqa: PLC0415

        tls = None if self.tls_root is None else Tls(self.tls_root.read_bytes())
        return connect(self.server, token=self.token, tls=tls)


def access_options(command: _Command) -> _Command:
    """Give a command `--token` and `--tls-root`, as arguments of these names."""
    for option in (
        click.option(
            "--tls-root",
            envvar="NEARCAST_TLS_ROOT",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Certificates to verify the server with, PEM.",
        ),
        click.option("--token", envvar="NEARCAST_TOKEN", help="What the server asks for."),
    ):
        command = option(command)
    return command


def server_option(command: _Command) -> _Command:
    """Give a command `--server`, for one whose arguments are something else."""
    return click.option(
        "--server",
        metavar="HOST:PORT",
        envvar="NEARCAST_SERVER",
        default="localhost:7433",
        show_default=True,
        help="Where it listens.",
    )(command)
