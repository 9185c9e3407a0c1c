"""What `nearcast serve --processes N` runs: a server of the log, and a command for each node."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cli.options import facts_of, server_settings

if TYPE_CHECKING:
    from cluster.local_servers import LocalServer
    from server.settings import ServerSettings

_TOKEN_BYTES = 24


class PlanError(Exception):
    """The processes cannot be started. The message starts with the setting."""


class Plan(NamedTuple):
    """What to run."""

    log: LocalServer
    nodes: list[list[str]]
    """A command each."""


@contextlib.contextmanager
def planned(settings: ServerSettings, chosen: dict[str, Any], config: Path | None) -> Iterator[Plan]:
    """Prepare the folder, and lock it for as long as the block runs.

    Parameters
    ----------
    settings
        The settings of this process.
    chosen
        The flags that the user gives; every node gets them, too.
    config
        The configuration file.

    Raises
    ------
    PlanError
        If a program is missing, or the folder cannot be used.
    """
    _require_programs(settings)
    from cluster.local_servers import configured  # noqa: PLC0415

    folder = settings.store
    _require_folder(settings)
    with _locked(folder):
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        (log,) = configured(folder / "log", token=token)
        token_file = folder / "log" / "token"
        token_file.unlink(missing_ok=True)
        token_file.touch(mode=0o600)
        token_file.write_text(token)
        of_log = {
            "log": log.url,
            "log_monitor": log.monitor_url,
            "log_replicas": 1,
            "log_token_file": token_file,
        }
        common = chosen | of_log | {"processes": 1, "create": True}
        commands = (_command(common | own, config) for own in _own_settings(settings))
        yield Plan(log, list(commands))


def _own_settings(settings: ServerSettings) -> Iterator[dict[str, Any]]:
    """Yield the settings of each node that are its own."""
    ports = _ports(settings.port, settings.processes)
    metrics_port = settings.metrics_port
    metrics_ports = [] if metrics_port is None else _ports(metrics_port, settings.processes)
    host, _, advertised_port = settings.advertise.rpartition(":")
    for i, port in enumerate(ports):
        found: dict[str, Any] = {"port": port, "store": settings.store / f"node{i + 1}.db"}
        if metrics_ports:
            found["metrics_port"] = metrics_ports[i]
        if settings.advertise:
            found["advertise"] = f"{host}:{int(advertised_port) + i}"
        yield found


def _ports(first: int, count: int) -> list[int]:
    """Return ports from the first one on; free ones for 0, which nodes have again when they are back."""
    from cluster.local_servers import free_ports  # noqa: PLC0415

    return list(range(first, first + count)) if first else free_ports(count)


def _command(flags: dict[str, Any], config: Path | None) -> list[str]:
    """Return the command of a node."""
    found = [sys.executable, "-m", "cli", "serve"]
    if config is not None:
        found.append(f"--config={config}")
    for name, facts in facts_of(server_settings()).items():
        value = flags.get(name)
        if facts.off_flag and value is not None:
            found.append(facts.flag if value else facts.off_flag)
        elif value is not None:
            values = value if facts.is_list else (value,)
            found += [f"{facts.flag}={one}" for one in values]
    return found


def _require_programs(settings: ServerSettings) -> None:
    from cluster.local_servers import program  # noqa: PLC0415
    from safe_region.extras import how_to_install  # noqa: PLC0415

    missing = "nats-server" if program() is None else "nats" if find_spec("nats") is None else ""
    if missing:
        hint = how_to_install("cluster")
        raise PlanError(f"processes is {settings.processes}, which needs {missing}: {hint}")


def _require_folder(settings: ServerSettings) -> None:
    """Verify that the folder exists, or make it."""
    folder = settings.store
    if "store" not in settings.model_fields_set or folder == Path(":memory:"):
        raise PlanError(
            "store must be a folder with --processes, for the log and the stores of all nodes"
        )
    if folder.is_file():
        raise PlanError(f"store is {str(folder)!r}, must be a folder with --processes, not a file")
    if not folder.is_dir() and not settings.create:
        raise PlanError(f"store is {str(folder)!r}, must exist; --create makes a new folder")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"store is {str(folder)!r}, must be a folder: {error.strerror}") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from using the folder: two servers of a log would damage it."""
    import fcntl  # noqa: PLC0415 - not on Windows, for which there is no server of the log

    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = f"store is {str(folder)!r}, must not be used by another process of nearcast"
            raise PlanError(text) from None
        yield
