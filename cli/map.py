"""`nearcast map`."""

from __future__ import annotations

import contextlib
import logging
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import click

from cli.failures import WrongUseError, reported
from cli.options import gateway_settings
from cli.paths import LocalPath
from cli.settings_errors import read_settings
from cli.target_options import AskingCommand, Target, access_options, server_option

if TYPE_CHECKING:
    from gateway.main import Gateway

READY = "map on "
"""Start of the line on standard output with the address of the page."""
RECORDED = "replay.ncmap"
"""The file of a replayed run, in its folder."""


@click.command(cls=AskingCommand, epilog="Example: nearcast map runs/demo")
@click.argument("run", type=LocalPath(exists=True), required=False)
@server_option
@access_options
@click.option(
    "--gateway",
    metavar="URL",
    help="Address of a gateway that runs already, such as https://near.example; print the address of its "
    "page.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page; by default a free one.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser of this machine.")
def map_(run: Path | None, gateway: str | None, port: int, *, opens: bool, **access: Any) -> None:  # noqa: ANN401
    """Show a live map of a server: devices, objects, safe regions, rates.

    Starts a gateway on this machine for as long as the command runs, unless --gateway names one. RUN adds
    a recorded run with a slider: a folder of `demo`, `replay --report` or `simulate`, or a file from it.
    If you give a token, the address has it in its fragment, which browsers do not send.
    """
    target = Target(**access)
    token, _ = target.credentials()
    fragment = _fragment(token, has_run=run is not None)
    if gateway is not None:
        _show(_page_of(gateway, run) + fragment, opens=opens)
        return
    from gateway.main import PortError, serve  # noqa: PLC0415
    from identity.watched_file import FileError  # noqa: PLC0415

    def announce(started: Gateway) -> None:
        _show(f"http://127.0.0.1:{started.port}/map/{fragment}", opens=opens)

    warnings = contextlib.nullcontext() if run is None else _without_warnings()
    with _map_file(run) as file, warnings, reported(PortError, FileError):
        serve(_settings(target, token, port, file), announce)


def _fragment(token: str | None, *, has_run: bool) -> str:
    fields = [f"token={quote(token, safe='')}"] if token else []
    fields += ["run=0"] if has_run else []
    return f"#{'&'.join(fields)}" if fields else ""


def _page_of(gateway: str, run: Path | None) -> str:
    """Return the address of the page of a gateway.

    Raises
    ------
    click.UsageError
        If the address is none, or a run is given: the gateway has its own file.
    """
    if run is not None:
        raise click.UsageError(
            "RUN is for a gateway of this command; start the other with --map-file FILE"
        )
    parts = urlsplit(gateway)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise click.UsageError(f"--gateway is {gateway!r}, must be such as https://near.example")
    return f"{gateway.rstrip('/')}/map/"


def _show(address: str, *, opens: bool) -> None:
    click.echo(f"{READY}{address}")
    if opens:
        webbrowser.open(address)


def _settings(target: Target, token: str | None, port: int, map_file: Path | None) -> Any:  # noqa: ANN401 - imported late
    """Return the settings of a gateway on the loopback interface. Variables have no effect on them.

    Its callers must have the token: it opens streams to the server with it, and other users of this
    machine can reach its port.

    Raises
    ------
    WrongUseError
        If tokens would be sent to another machine without TLS.
    """
    chosen = {
        "host": "127.0.0.1",
        "port": port,
        "server": target.server,
        "server_token_file": (target.token_file,) if token and target.token_file else (),
        "server_tls": target.tls,
        "server_tls_roots": target.tls_roots,
        "server_tls_name": target.tls_server_name or "",
        "insecure": target.insecure,
        "tokens": (token,) if token else (),
        "map_file": map_file,
    }
    try:
        return read_settings(gateway_settings(), chosen, None, reads_environment=False)
    except WrongUseError as error:
        raise WrongUseError(error.message.replace("--server-tls", "--tls")) from None


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Let the gateway log errors only: a recorded run needs no server."""
    log = logging.getLogger("gateway")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@contextlib.contextmanager
def _map_file(run: Path | None) -> Iterator[Path | None]:
    """Return the file of a run. A folder without one gets a temporary one."""
    if run is None or run.is_file():
        yield run
    elif (run / RECORDED).is_file():
        yield run / RECORDED
    else:
        from simulator.errors import SimulationError  # noqa: PLC0415
        from simulator.recorded_map.writer import write_recorded_map  # noqa: PLC0415

        with TemporaryDirectory() as folder, reported(SimulationError, OSError):
            file = Path(folder) / RECORDED
            write_recorded_map(run, file)
            yield file
