"""The programs of docs/testing.md run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from server.settings import load_settings
from tests.support.programs import printed
from tests.support.servers import serving

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
TICKS = 20


async def run(program: str, folder: Path, *arguments: str) -> str:
    settings = load_settings(
        {"area": "14.18,35.80,14.58,36.09", "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        return await printed(program, "localhost:7533", server.port, folder, *arguments)


def test_a_test_with_a_server_of_its_own(tmp_path):
    (tmp_path / "test_offers.py").write_text(PROGRAMS[0])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_offers.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=with_this_project()
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def with_this_project() -> dict[str, str]:
    """Return the environment of a program that is elsewhere."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


async def test_a_device_step_by_step(tmp_path):
    assert (await run(PROGRAMS[1], tmp_path)).startswith("passed; 60 moves, ")


async def test_many_devices_along_trajectories(tmp_path):
    (tmp_path / "world.json").write_text(json.dumps({"period_ms": 1000}))
    folder = tmp_path / "trajectories" / "slice=00000"
    folder.mkdir(parents=True)
    rows = [
        {
            "device_id": f"car-{car}",
            "tick": tick,
            "lon": 14.4 + 0.0001 * tick,
            "lat": 35.9 + 0.01 * car,
            "heading_deg": 90.0,
            "speed_mps": 9.0,
        }
        for car in range(3)
        for tick in range(TICKS)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), folder / "part.parquet")
    out = await run(PROGRAMS[2], tmp_path, str(tmp_path))
    assert out.startswith(f"3 devices, {3 * TICKS} positions, ")
