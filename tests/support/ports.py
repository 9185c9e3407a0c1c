"""Ports for servers that come back where they were."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections import deque

from cluster.local_servers import PORTS

_FIRST, _LAST = PORTS.stop, 30_000
"""Below what systems give to connections, which would take the port of a server that is down."""

_WORKERS_MAX = 16
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS_MAX
"""Tests that run beside these choose among other ports."""

LOG_PORTS = PORTS[_WORKER::_WORKERS_MAX]
"""For the servers of logs: one of them would take the port of another server that is down."""

_LATEST: deque[int] = deque(maxlen=400)
"""Ports that were returned, whose servers may not run yet or come back."""


def free_port() -> int:
    """Return a port that nobody uses, nor will unless asked to, and that was not returned of late."""
    while True:
        port = random.SystemRandom().randrange(_FIRST + _WORKER, _LAST, _WORKERS_MAX)
        if port in _LATEST:
            continue
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            _LATEST.append(port)
            return port
