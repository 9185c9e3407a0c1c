"""Several hosts on one machine: network namespaces, each with an address, a name and memory of its own.

A host has its own loopback, network card, name, `/dev/shm`, `/tmp`, `/etc/hosts` and home folder. What
lies elsewhere on the machine all hosts see: the program, as on machines that were set up alike, and
whatever folder is to be shared. The cards are joined by a bridge that leads nowhere else.

Linux only, as root, with iproute2 and util-linux.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

_NET = "10.214"
_SHM = "size=4g"
_LOCAL_NAMES = "127.0.0.1 localhost\n"
_GONE_S = 10.0
"""A process that was killed is gone by then."""
_IP = shutil.which("ip") or "ip"
_TOOLS = ("ip", "unshare", "mount", "hostname")

_ENTER = """\
set -e
hostname "$2"
mount --make-rprivate /
mount --bind "$1/shm" /dev/shm
mount --bind "$1/tmp" /tmp
mount --bind "$1/hosts" /etc/hosts
shift 2
exec "$@"
"""
"""How a process becomes one of a host's; arguments: the host's folder, its name, a command."""


class HostError(Exception):
    """A host does not do what it is asked to."""


def missing() -> str:
    """Return why there can be no hosts here; nothing if there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "hosts are network namespaces, which only root may make"
    absent = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not installed (Debian: iproute2, util-linux, mount, hostname)"
    name = f"nc-try-{os.getpid()}"
    done = subprocess.run([_IP, "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no network namespace can be made: {done.stderr.strip()}"
    _run(_IP, "netns", "del", name)
    return ""


class Host:
    """One host.

    Parameters
    ----------
    name
        Which others know it by.
    address
        Its own.
    folder
        What is its alone lies there.
    prefix
        Of the names of its namespace and cable, for there may be other hosts of that name.
    """

    def __init__(self, name: str, address: str, folder: Path, prefix: str) -> None:
        self.name, self.address, self.folder = name, address, folder
        self._namespace, self._cable = f"{prefix}-{name}", f"{prefix}{name}"

    @property
    def home(self) -> Path:
        """The home folder of whoever works there."""
        return self.folder / "home"

    @property
    def memory(self) -> Path:
        """Its `/dev/shm`, as this machine sees it."""
        return self.folder / "shm"

    def start(
        self, command: Sequence[str], log: IO[bytes], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process there."""
        entered = [_IP, "netns", "exec", self._namespace, "unshare", "--mount", "--uts"]
        entered += ["bash", "-c", _ENTER, "enter", str(self.folder), self.name, *command]
        return subprocess.Popen(
            entered,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(self.home), **(environment or {})},
        )

    def processes(self) -> list[int]:
        """Return all that run there."""
        done = subprocess.run(
            [_IP, "netns", "pids", self._namespace], capture_output=True, text=True, check=False
        )
        return [int(line) for line in done.stdout.split()]

    def kill(self) -> None:
        """End all that runs there at once, as when its power fails. Its memory is empty afterwards."""
        end_s = time.monotonic() + _GONE_S
        while found := self.processes():
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if time.monotonic() > end_s:
                raise HostError(f"{self.name}: processes {found} do not end")
            time.sleep(0.05)
        self.forget()

    def forget(self) -> None:
        """Empty its memory."""
        for path in self.memory.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def cut(self) -> None:
        """Unplug its cable."""
        _run(_IP, "link", "set", self._cable, "down")

    def mend(self) -> None:
        """Plug its cable in again."""
        _run(_IP, "link", "set", self._cable, "up")

    def plug(self, bridge: str) -> None:
        """Make the host."""
        for path in (self.memory, self.folder / "tmp", self.home):
            path.mkdir(parents=True)
        _run("mount", "-t", "tmpfs", "-o", _SHM, "tmpfs", str(self.memory))
        for path in (self.memory, self.folder / "tmp"):
            path.chmod(0o1777)
        _run(_IP, "netns", "add", self._namespace)
        inner = ["type", "veth", "peer", "name", "eth0", "netns", self._namespace]
        _run(_IP, "link", "add", self._cable, *inner)
        _run(_IP, "link", "set", self._cable, "master", bridge)
        _run(_IP, "link", "set", self._cable, "up")
        _run(_IP, "-n", self._namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for card in ("eth0", "lo"):
            _run(_IP, "-n", self._namespace, "link", "set", card, "up")

    def unplug(self) -> None:
        """Remove the host and all that runs there."""
        with suppress(FileNotFoundError):
            self.kill()
        for command in (
            (_IP, "netns", "del", self._namespace),
            (_IP, "link", "del", self._cable),
            ("umount", str(self.memory)),
        ):
            subprocess.run(command, capture_output=True, check=False)


class Hosts:
    """Some hosts, of the names h1, h2, ..., for as long as the block lasts.

    Parameters
    ----------
    count
        How many.
    folder
        New; what is a host's alone lies below it. Not below `/tmp`, which each host has of its own.
    """

    def __init__(self, count: int, folder: Path) -> None:
        self._prefix = f"nc{os.getpid() % 10_000}"
        self._bridge = f"{self._prefix}br"
        net = f"{_NET}.{os.getpid() % 250}"
        self._router = f"{net}.254"
        self._all = [
            Host(f"h{number}", f"{net}.{number}", folder / f"h{number}", self._prefix)
            for number in range(1, count + 1)
        ]

    def __enter__(self) -> Self:
        names = "".join(f"{host.address} {host.name}\n" for host in self._all)
        try:
            _run(_IP, "link", "add", self._bridge, "type", "bridge")
            _run(_IP, "addr", "add", f"{self._router}/24", "dev", self._bridge)
            _run(_IP, "link", "set", self._bridge, "up")
            for host in self._all:
                host.plug(self._bridge)
                (host.folder / "hosts").write_text(_LOCAL_NAMES + names)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._all:
            host.unplug()
        subprocess.run([_IP, "link", "del", self._bridge], capture_output=True, check=False)

    def __getitem__(self, number: int) -> Host:
        return self._all[number]

    def __len__(self) -> int:
        return len(self._all)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostError(f"{' '.join(command)}: {done.stderr.strip()}")
