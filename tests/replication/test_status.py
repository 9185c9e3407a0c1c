"""`nearcast cluster status`: nodes, leases, and the servers of the log."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from click.testing import CliRunner

from cli.app import app
from cluster.entries import RULES
from cluster.slots import SLOTS
from tests.replication.conftest import log_servers
from tests.replication.test_devices import settled
from tests.replication.test_nodes import node

pytestmark = pytest.mark.processes


async def status(server, *flags):
    """Return the exit status, and the output."""
    arguments = ["cluster", "status", f"--server=127.0.0.1:{server.port}", *flags]
    done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    return done.exit_code, done.stdout


async def until_shown(server, expected, pattern):
    """Wait for an exit status and for something in the output, which is returned."""
    while True:
        code, text = await status(server)
        if code == expected and re.search(pattern, text):
            return text


async def test_status_shows_nodes_leases_and_the_servers_of_the_log(tmp_path):
    with log_servers(tmp_path / "log", 3) as logs:
        async with node(logs, tmp_path / "a.db") as one:
            await settled(one)
            all_owned = "1,024 of 1,024 slots have an owner, 1,024 are served"
            lines = (await until_shown(one, 0, all_owned)).splitlines()
            assert re.split(r" {2,}", lines[0])[:5] == ["node", "state", "owns", "lease ms", "serves"]
            cells = re.split(r" {2,}", lines[1])
            assert cells[:3] == [f"127.0.0.1:{one.port}", "READY", f"{SLOTS:,}"]
            assert lines[3] == all_owned
            assert re.split(r" {2,}", lines[5]) == ["stream", "leader", "replicas", "messages", "bytes"]
            for line, name in zip(lines[6:], ("nearcast", "nearcast-devices"), strict=True):
                found, leader, others, *_ = re.split(r" {2,}", line)
                assert found == name
                assert sorted([leader, *others.split(", ")]) == ["log1", "log2", "log3"]
            _, text = await status(one, "--json")
            found = json.loads(text)
            assert [server["is_leader"] for server in found["log_streams"][0]["servers"]].count(True) == 1
            [shown] = found["nodes"]
            assert (shown["rules"], shown["gauges"]["cluster_rules"]) == (RULES, RULES)
            assert 0 <= shown["lease_age_ms"] < 60_000
            follower = next(log for log in logs if not log.leads("nearcast"))
            follower.kill()
            await until_shown(one, 1, rf"{follower.name} \([\d,]+ behind\)")
            for log in logs:
                log.kill()
            await until_shown(one, 1, "the log does not respond")
