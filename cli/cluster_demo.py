"""A cluster for a demo: three servers of a log, and nodes, one of which is killed in the middle."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from cli.failures import reported
from cli.serve import READY
from cli.started import Started, started_process

_LOG_SERVERS = 3


class DemoCluster:
    """Nodes that run.

    Parameters
    ----------
    nodes
        Their processes.
    """

    def __init__(self, nodes: list[Started]) -> None:
        self._nodes = nodes
        self._is_whole = True

    @property
    def target(self) -> str:
        """The addresses of all nodes, for clients."""
        return ",".join(node.address for node in self._nodes)

    def watch(self, stage: str, done: int, total: int) -> None:
        """Kill the first node in the middle of the replay: a callback for its progress."""
        if self._is_whole and stage == "replay" and 2 * done >= total:
            self._is_whole = False
            self._nodes[0].process.kill()
            self._nodes[0].process.wait()


@contextlib.contextmanager
def cluster(
    out: Path, area: tuple[float, float, float, float], count: int, flags: tuple[str, ...]
) -> Iterator[DemoCluster]:
    """Run servers of a log and nodes in virtual time, with new stores.

    Parameters
    ----------
    out
        Folder of the demo.
    area
        The service area.
    count
        Number of nodes.
    flags
        Further flags of the nodes.
    """
    from cluster.local_servers import local_servers  # noqa: PLC0415
    from cluster.log import LogError  # noqa: PLC0415

    folder = out / "cluster"
    shutil.rmtree(folder, ignore_errors=True)
    bounds = ",".join(str(bound) for bound in area)
    with contextlib.ExitStack() as stack:
        with reported(LogError):
            logs = stack.enter_context(local_servers(folder, _LOG_SERVERS))
        of_log = (
            f"--log={','.join(one.url for one in logs)}",
            f"--log-monitor={','.join(one.monitor_url for one in logs)}",
        )
        common = (f"--area={bounds}", "--port=0", "--create", "--virtual-time", "--log-level=ERROR")
        nodes = []
        for number in range(count):
            store = f"--store={folder / f'node{number + 1}.db'}"
            node = started_process("serve", READY, *common, *of_log, store, *flags)
            nodes.append(stack.enter_context(node))
        found = DemoCluster(nodes)
        click.echo(f"watch it: nearcast cluster status --server {nodes[-1].address}")
        yield found
