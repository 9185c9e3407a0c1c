"""Options of the commands that call a server: its address, tokens and TLS."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from cli.failures import WrongUseError
from cli.roots import RootsError, roots_of
from cli.server_address import PORT, ServerAddress

if TYPE_CHECKING:
    from nearcast import Client, Tls, UnavailableError

_Command = TypeVar("_Command", bound=Callable[..., object])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

RESPONSE_S = 5.0
"""Time limit for a response that needs no work; gRPC itself would wait 20 s."""


class Target(NamedTuple):
    """A server or several of a cluster, and the credentials for them.

    Parameters
    ----------
    server
        HOST:PORT, with commas between several.
    token
        Token of the caller, if there is one.
    token_file
        File with the token, in place of `token`.
    tls
        Whether the connection is encrypted; `tls_roots` or `tls_server_name` imply it.
    tls_roots
        File of the certificates that verify the server; None for the system's certificates.
    tls_server_name
        Name in the server's certificate, if it is not the host.
    insecure
        Whether a token may be sent to another machine without TLS.
    """

    server: str
    token: str | None = None
    token_file: Path | None = None
    tls: bool = False
    tls_roots: Path | None = None
    tls_server_name: str | None = None
    insecure: bool = False

    @asynccontextmanager
    async def connect(self, limit_s: float | None = RESPONSE_S) -> AsyncIterator[Client]:
        """Connect a client. The work with it is limited to `limit_s` seconds.

        Raises
        ------
        UnavailableError
            If the server cannot be reached or does not respond; the message has a hint.
        click.ClickException
            If a token or certificates cannot be read.
        """
        token, tls = self.credentials()
        from nearcast import UnavailableError, connect  # noqa: PLC0415

        try:
            async with (
                asyncio.timeout(limit_s),
                connect(self.server, token=token, tls=tls, insecure=self.insecure) as client,
            ):
                yield client
        except UnavailableError as error:
            raise UnavailableError(self.explained(error)) from None
        except TimeoutError:
            raise UnavailableError(self.silent(limit_s)) from None

    def credentials(self) -> tuple[str | None, Tls | None]:
        """Return the token, and the settings of the encryption.

        Raises
        ------
        click.ClickException
            If a file cannot be read.
        WrongUseError
            If the token is the name of a file, or would be sent to another machine without TLS.
        """
        from nearcast import Tls  # noqa: PLC0415
        from nearcast.transport.loopback import is_loopback  # noqa: PLC0415

        if self.token is not None and os.path.isfile(self.token):  # noqa: PTH113 - it may be too long a name
            raise WrongUseError(
                f"--token is {self.token}, the name of a file, must be a token; give --token-file to "
                "read it from there"
            )
        try:
            token = self.token if self.token_file is None else self.token_file.read_text("ascii").strip()
            if not self._is_encrypted():
                is_local = all(is_loopback(address) for address in self.server.split(","))
                if token and not self.insecure and not is_local:
                    raise WrongUseError(
                        f"--server is {self.server}, must be of this machine without TLS: the token "
                        "would be sent unencrypted; give --tls, --tls-roots or --insecure"
                    )
                return token, None
            roots = None if self.tls_roots is None else roots_of(self.tls_roots)
        except RootsError as error:
            raise click.ClickException(f"--tls-roots: {error}") from None
        except (OSError, UnicodeError) as error:
            reason = f"--token-file {self.token_file} cannot be read: {error}"
            raise click.ClickException(reason) from None
        return token, Tls(roots, self.tls_server_name)

    def explained(self, error: UnavailableError) -> str:
        """Return the message of an error, with a hint about the options to change."""
        from nearcast.transport.connection_hints import Remedies, likely_mistake  # noqa: PLC0415

        remedies = Remedies(
            "Give --tls, or --tls-roots FILE",
            "If not, leave out --tls and --tls-roots",
            "set others with --tls-roots",
            "set it with --tls-server-name",
        )
        hint = likely_mistake(error.message, remedies, is_encrypted=self._is_encrypted())
        return f"{error.message}; {hint}" if hint else error.message

    def silent(self, limit_s: float | None) -> str:
        """Return a message that there was no response."""
        return f"{self.server} accepts connections, but gave no response within {limit_s:g} s"

    def _is_encrypted(self) -> bool:
        return self.tls or self.tls_roots is not None or self.tls_server_name is not None


def access_options(command: _Command) -> _Command:
    """Add the options of tokens and TLS to a command, with the names of the fields of `Target`."""
    for option in (
        click.option(
            "--tls-server-name",
            metavar="NAME",
            envvar="NEARCAST_TLS_SERVER_NAME",
            show_envvar=True,
            help="With TLS, the name in the server's certificate, if it differs from the host.",
        ),
        click.option(
            "--insecure",
            is_flag=True,
            help="Send the token to another machine without TLS; anyone on the network path can read it.",
        ),
        click.option(
            "--tls-roots",
            "--tls-root",  # its former name
            metavar="FILE",
            envvar=["NEARCAST_TLS_ROOTS", "NEARCAST_TLS_ROOT"],
            show_envvar=True,
            type=_FILE,
            help="With TLS, verify the server with the root certificates of this PEM file.",
        ),
        click.option(
            "--tls",
            is_flag=True,
            envvar="NEARCAST_TLS",
            show_envvar=True,
            help="Use TLS, and verify the server with the root certificates of this system.",
        ),
        click.option(
            "--token-file",
            metavar="FILE",
            envvar="NEARCAST_TOKEN_FILE",
            show_envvar=True,
            type=_FILE,
            callback=_instead_of_token,
            help="File with the token.",
        ),
        click.option(
            "--token",
            metavar="TEXT",
            envvar="NEARCAST_TOKEN",
            show_envvar=True,
            is_eager=True,
            callback=_read_if_requested,
            help="Token, if the server requires one; - reads it from standard input. On a command line "
            "other users of this machine can see it; in the variable or a file they cannot.",
        ),
    ):
        command = option(command)
    return command


def server_option(command: _Command) -> _Command:
    """Add the option `--server` to a command."""
    return click.option(
        "--server",
        type=ServerAddress(),
        envvar="NEARCAST_SERVER",
        show_envvar=True,
        default=f"localhost:{PORT}",
        show_default=True,
        help=f"Address of the server, or of servers of a cluster; the default port is {PORT}.",
    )(command)


class AskingCommand(click.Command):
    """A command that calls a server. The error for an address as an argument names the option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and switch off the log of gRPC's core: its messages are in errors, too.

        The SDK parses the address, so gRPC is loaded from then on.
        """
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not error.message.startswith("Got unexpected extra argument"):
                raise
            raise click.UsageError(
                f"{error.message}; give a server as --server HOST[:PORT]", ctx
            ) from None


def _read_if_requested(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> str | None:
    """Return a token; for a dash, read it from a line of standard input."""
    return sys.stdin.readline().strip() if value == "-" else value


def _instead_of_token(
    context: click.Context, _parameter: click.Parameter, value: Path | None
) -> Path | None:
    """Refuse a file and a token together on the command line, which takes precedence over variables."""
    if value is None or not context.params.get("token"):
        return value
    by_flag = ParameterSource.COMMANDLINE
    if context.get_parameter_source("token") is not by_flag:
        return value
    if context.get_parameter_source("token_file") is by_flag:
        raise click.UsageError("--token and --token-file are mutually exclusive")
    return None
