"""The programs of examples/ run beside each other."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from server.settings import load_settings
from tests.support.ports import free_port
from tests.support.servers import serving

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


async def start(name: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "examples" / name),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )


async def test_a_courier_sees_the_offers_of_a_shop_as_he_walks():
    settings = load_settings({"area": "14.18,35.80,14.58,36.09", "store": ":memory:", "port": 0})
    async with serving(settings) as server:
        address = f"--server=127.0.0.1:{server.port}"
        shop = await start("shop.py", address)
        assert await shop.stdout.readline() == b"3 offers published\n"
        courier = await start("courier.py", address, "--pause-s=0.01", "--steps=20")
        out, _ = await courier.communicate()
        shop.send_signal(signal.SIGTERM)
        last, _ = await shop.communicate()
        assert not server.coordinator.sessions
        assert not server.coordinator.matching.objects
    assert courier.returncode == shop.returncode == 0
    *_, summary = [line for line in out.decode().splitlines() if " moves, " in line]
    assert summary.startswith("41 moves, ")
    assert summary.endswith(", exact")
    assert "  1. iced tea, free refill" in out.decode()
    assert "REORDERED ['sushi'] " in out.decode()
    assert last == b"closed, all offers retracted\n"


async def test_a_script_imports_a_file_as_often_as_one_likes():
    settings = load_settings({"area": "14.18,35.80,14.58,36.09", "store": ":memory:", "port": 0})
    async with serving(settings) as server:
        address = f"--server=127.0.0.1:{server.port}"
        for _ in range(2):
            script = await start("import_offers.py", "examples/offers.csv", address)
            out, _ = await script.communicate()
            assert script.returncode == 0
            first, *found = out.decode().splitlines()
            assert first == "4 offers imported"
            assert [line.partition(" m  ")[2] for line in found] == [
                "sushi, 20 % off",
                "iced tea",
                "tea for two",
            ]
        assert len(server.coordinator.matching.objects) == 4


async def test_a_script_without_a_server_says_what_to_look_at():
    script = await asyncio.create_subprocess_exec(
        sys.executable,
        "examples/import_offers.py",
        "examples/offers.csv",
        f"--server=127.0.0.1:{free_port()}",
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    _, error = await script.communicate()
    assert script.returncode == 1
    assert b"is a server running at this address?" in error
    assert b"Traceback" not in error
