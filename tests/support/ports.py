"""Ports for servers that come back where they were."""

from __future__ import annotations

import contextlib
import os
import random
import socket

_FIRST, _LAST = 15_000, 30_000
"""Below what systems give to connections, which would take the port of a server that is down."""

_WORKERS_MAX = 16
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS_MAX
"""Tests that run beside these choose among other ports."""


def free_port() -> int:
    """Return a port that nobody uses, nor will unless asked to."""
    while True:
        port = random.SystemRandom().randrange(_FIRST + _WORKER, _LAST, _WORKERS_MAX)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
