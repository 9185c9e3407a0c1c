"""Starts the server of a log and the nodes, keeps them running, and stops them in the reverse order."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.announcing import write_line
from cli.options import server_settings
from cli.processes.child import Child, ChildError
from cli.processes.plan import Plan, PlanError, planned
from cli.settings_errors import labelled

if TYPE_CHECKING:
    from cluster.local_servers import LocalServer
    from server.settings import ServerSettings

_log = logging.getLogger(__name__)

_READY = "serving on "
_POLL_S = 0.05
_NODE_STOP_S = 20.0
"""Nodes that stop together hand hardly any devices over. They end streams for seven seconds."""
_LOG_STOP_S = 5.0


def serve_processes(settings: ServerSettings, chosen: dict[str, Any], config: Path | None) -> None:
    """Run a log and nodes until SIGTERM or Ctrl-C; see `cli/processes`.

    Raises
    ------
    click.ClickException
        If they cannot be started, or one does not stop without an error.
    """
    try:
        with planned(settings, chosen, config) as plan:
            write_line(
                f"the log is on one disk, in {settings.store}: what is acknowledged survives crashes and "
                "power cuts, but not the loss of this disk"
            )
            asyncio.run(_run(plan))
    except PlanError as error:
        raise click.ClickException(labelled(server_settings(), str(error), chosen, config)) from None
    except ChildError as error:
        raise click.ClickException(str(error)) from None


async def _run(plan: Plan) -> None:
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    loop.add_signal_handler(signal.SIGHUP, _log.info, "SIGHUP ignored: settings are read once")
    log = _log_server(plan.log)
    nodes = [_node(i, command) for i, command in enumerate(plan.nodes, 1)]
    running = asyncio.create_task(_keep(log, nodes))
    waiting = asyncio.create_task(signalled.wait())
    try:
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        running.cancel()
        waiting.cancel()
        failure = (await asyncio.gather(running, return_exceptions=True))[0]
        failed = await _stopped(log, nodes)
    if isinstance(failure, Exception):
        raise failure
    if failed:
        raise ChildError(f"{', '.join(failed)} did not stop without an error; see the messages above")


async def _keep(log: Child, nodes: Sequence[Child]) -> None:
    """Start all, then keep them running, until cancelled."""
    await log.start()
    first, *others = nodes
    await first.start()  # it makes the streams, and compiles kernels that are missing
    await asyncio.gather(*(node.start() for node in others))
    write_line(f"all {len(nodes)} nodes are ready")
    await asyncio.gather(*(child.keep() for child in (log, *nodes)))


async def _stopped(log: Child, nodes: Sequence[Child]) -> list[str]:
    """Stop the nodes together, then the log; return the names of those that did not end well."""
    done = await asyncio.gather(*(node.stop(_NODE_STOP_S) for node in nodes))
    found = [node.name for node, is_good in zip(nodes, done, strict=True) if not is_good]
    if not await log.stop(_LOG_STOP_S):
        found.append(log.name)
    return found


def _log_server(server: LocalServer) -> Child:
    async def is_ready(process: asyncio.subprocess.Process) -> bool:
        while await asyncio.to_thread(server.health) != "ok":
            if process.returncode is not None:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    return Child("the log server", server.command, is_ready, server.log_file)


def _node(number: int, command: Sequence[str]) -> Child:
    name = f"node {number}"
    tasks = set()

    async def pass_on(output: asyncio.StreamReader) -> None:
        async for line in output:
            write_line(f"{name} {line.decode().rstrip()}")

    async def is_ready(process: asyncio.subprocess.Process) -> bool:
        """Wait for the line with the port of a node, and pass on all lines."""
        assert process.stdout is not None  # noqa: S101 - for the type checker
        line = (await process.stdout.readline()).decode()
        if not line.startswith(_READY):
            return False
        write_line(f"{name} {line.rstrip()}")
        task = asyncio.create_task(pass_on(process.stdout))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return True

    return Child(name, command, is_ready)
