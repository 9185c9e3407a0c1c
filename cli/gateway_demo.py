"""A gateway for a demo, and devices in Node.js behind it."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click

from cli.gateway import READY
from cli.started import started

NODE_MIN = 20
PROGRAM = Path(__file__).parents[1] / "clients" / "typescript" / "build" / "tools" / "replay_devices.js"
"""The devices of a replay with the TypeScript SDK, compiled."""

_FLAGS = ("--port=0", "--log-level=WARNING", "--address-connections-max=0")
_NO_RATE = "--device-rate=1000000"
"""A replay moves its devices at full speed."""


def node_program() -> tuple[str, ...]:
    """Return the command line of the devices in Node.js.

    Raises
    ------
    click.ClickException
        If Node.js or the compiled program is absent.
    """
    node = shutil.which("node")
    if node is None:
        raise click.ClickException(f"--gateway needs Node.js {NODE_MIN} or newer, and there is none")
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = re.match(r"v(\d+)\.", done.stdout)
    if version is None or int(version[1]) < NODE_MIN:
        found = done.stdout.strip() or "no version"
        raise click.ClickException(f"--gateway needs Node.js {NODE_MIN} or newer: {node} is {found}")
    if not PROGRAM.is_file():
        raise click.ClickException(
            f"--gateway needs the compiled devices in {PROGRAM}: make demo GATEWAY=1 compiles them"
        )
    return node, str(PROGRAM)


@contextlib.contextmanager
def gateway(target: str) -> Iterator[str]:
    """Run a gateway in front of a server; yield its address for WebSockets."""
    with started("gateway", READY, f"--server={target}", *_FLAGS, _NO_RATE) as address:
        yield f"ws://{address}"
