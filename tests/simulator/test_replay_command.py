"""`nearcast replay`: its table, its last line, its exit status."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import nearcast
from cli.app import app
from nearcast import GeoObject
from server.settings import load_settings
from tests.support.servers import serving

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


async def replay(simulation, server, *arguments):
    command = [sys.executable, "-m", "cli", "replay", str(simulation.path)]
    process = await asyncio.create_subprocess_exec(
        *command,
        f"--server=127.0.0.1:{server.port}",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode().splitlines()


@pytest.fixture
async def server(simulation):
    settings = load_settings(
        {"area": list(simulation.world.area), "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        yield server


async def test_output_and_files(simulation, server, tmp_path):
    figures, picture = tmp_path / "new" / "figures.json", tmp_path / "map.png"
    status, lines = await replay(simulation, server, f"--json={figures}", f"--map={picture}")
    assert status == 0
    found = json.loads(figures.read_text())
    assert lines[-1] == f"audit: {found['audited_lists']} lists, 0 mismatches"
    assert found["audited_lists"] > found["audited_boolean_lists"] > 0
    assert found["subscriptions"] > found["boolean_subscriptions"] > 0
    assert (
        found["audited_lists"]
        > found["audited_stationary_lists"]
        >= found["stationary_subscriptions"]
        > 0
    )
    assert found["reports_of_stationary"] == 0
    assert found["devices_of_fixed_ranges"] > 0
    assert found["reports_of_fixed_ranges"] == 0
    assert found["mismatches"] == 0
    assert found["reports"] < found["moves"]
    assert found["publish_to_device_p50_ms"] <= found["publish_to_device_p99_ms"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_file_that_cannot_be_written_is_reported_before_the_replay(simulation, tmp_path):
    (tmp_path / "file").write_text("x")
    target = tmp_path / "file" / "figures.json"
    arguments = ["replay", str(simulation.path), "--server=127.0.0.1:1", f"--json={target}"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert str(tmp_path / "file") in result.output
    assert "127.0.0.1" not in result.output


async def test_a_single_wrong_list_is_a_failure(simulation, server):
    """Somebody else publishes an object that suits everybody: lists are not what the replay expects."""
    words = {word for row in simulation.subscriptions["keywords"].to_pylist() for word in row or ()}
    area = simulation.world.area
    lon, lat = (area.lon_min + area.lon_max) / 2.0, (area.lat_min + area.lat_max) / 2.0
    async with nearcast.connect(f"127.0.0.1:{server.port}") as client:
        await client.advance_clock(simulation.world.start_ms)
        intruders = [GeoObject({word}, lon, lat, 86_400.0) for word in sorted(words)]
        await client.publisher().publish(intruders)
        status, lines = await replay(simulation, server)
    assert status == 1
    assert any(line.startswith("mismatch: tick ") for line in lines)
    assert lines[-1].startswith("audit: ")
    assert not lines[-1].endswith(" 0 mismatches")
