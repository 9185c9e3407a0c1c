"""`nearcast dev`: one command starts everything, one signal ends it."""

from __future__ import annotations

import asyncio
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest

import nearcast
from cli.dev.command import CROSSINGS, MIDDLE, READY
from cli.dev.streets import Streets
from cli.dev.town import Walker
from nearcast.v1 import control_service_pb2
from tests.gateway.test_watch import watch

ROOT = Path(__file__).parents[2]
SIZES = [(24, 18), (8, 6), (60, 50)]


@pytest.fixture
def streets():
    return Streets(14.46, 35.90, 24, 18, random.Random(7))


@pytest.mark.parametrize("size", SIZES)
def test_every_crossing_can_be_reached(size):
    streets = Streets(14.46, 35.90, *size, random.Random(3))
    found, waiting = set(), [next(iter(streets.from_crossing))]
    while waiting:
        crossing = waiting.pop()
        if crossing not in found:
            found.add(crossing)
            waiting += [street.target for street in streets.from_crossing[crossing]]
    assert found == streets.from_crossing.keys()
    assert len(found) > 0.8 * size[0] * size[1]
    for street in streets.all():
        assert street in streets.from_crossing[street.source]
        assert 20.0 < street.length_m < 250.0


def test_the_town_lies_in_its_area(streets):
    west, south, east, north = streets.area
    lines = [one["geometry"]["coordinates"] for one in streets.geojson()["features"]]
    assert len(lines) == len(list(streets.all()))
    for lon, lat in (place for line in lines for place in line):
        assert west < lon < east
        assert south < lat < north


PLACE = re.compile(r"\blon\W{1,3}(\d+\.\d+), \W?lat\W{1,3}(\d+\.\d+)")


@pytest.mark.parametrize("page", ["gateway.md", "typescript.md"])
def test_the_area_has_the_places_of_the_documentation(page):
    places = PLACE.findall((ROOT / "docs" / page).read_text())
    assert places
    for seed in range(20):
        west, south, east, north = Streets(*MIDDLE, *CROSSINGS, random.Random(seed)).area
        for lon, lat in places:
            assert west < float(lon) < east, lon
            assert south < float(lat) < north, lat


def test_walkers_keep_to_streets_at_their_speed(streets):
    rng = random.Random(11)
    for _ in range(20):
        walker, seconds = Walker(streets, rng), 0.7
        for _ in range(200):
            before = walker.place
            walker.walk(seconds)
            moved_m = _distance_m(before, walker.place)
            assert moved_m <= 1.001 * seconds * 8.0 * 1.15
            assert streets.along(walker._street, walker._done_m) == walker.place  # noqa: SLF001


def _distance_m(one, other):
    x = (other[0] - one[0]) * math.cos(math.radians(one[1]))
    return math.hypot(x, other[1] - one[1]) * 111_195.0


class Run:
    """A run of the command."""

    def __init__(self, *arguments):
        variables = {name: one for name, one in os.environ.items() if not name.startswith("NEARCAST_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cli", "dev", "--port=0", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=variables,
        )
        self.lines = []

    def address(self):
        """Return the printed address."""
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith(READY):
                return line.removeprefix(READY).strip()
        raise AssertionError("".join(self.lines))

    def end(self, number):
        """Send a signal; return the rest of the output, and the status."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=600)
        return output, self.process.returncode

    def children(self):
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(one) for one in path.read_text().split()]


@pytest.fixture
def started():
    runs = []

    def start(*arguments):
        runs.append(Run(*arguments))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.end(signal.SIGTERM)


async def _frames(address, token, condition):
    """Watch through the gateway; return the first frame for which something holds."""
    gateway = "http://" + address.partition("//")[2].partition("/")[0]
    protocols = ("nearcast.v1", f"bearer.{token}")
    async with (
        asyncio.timeout(120),
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{gateway}/v1/watch", protocols=protocols) as socket,
    ):
        view = {"lon_min": -180.0, "lat_min": -90.0, "lon_max": 180.0, "lat_max": 90.0}
        await socket.send_bytes(watch(view=view).SerializeToString())
        async for message in socket:
            frame = control_service_pb2.WatchFrame.FromString(message.data)
            assert not frame.HasField("go_away"), frame.go_away
            if condition(frame):
                return frame
    raise AssertionError("the connection has ended")


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_devices_walk_until_a_signal(started, number):
    run = started("--devices=40", "--objects=100")
    address = run.address()
    token = address.partition("#token=")[2]
    frame = asyncio.run(_frames(address, token, lambda one: one.rates.reports > 0.0))
    assert frame.devices.attached_count == 40
    assert frame.objects.count > 0
    children = run.children()
    assert len(children) == 2
    output, status = run.end(number)
    assert status == 0, output
    assert "Traceback" not in output
    assert output.endswith("ended\n")
    assert not any(Path(f"/proc/{one}").exists() for one in children)


@pytest.mark.processes
def test_more_signals_leave_no_process_behind(started):
    run = started("--no-town")
    run.address()
    children = run.children()
    assert len(children) == 2
    while run.process.poll() is None:
        run.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    deadline_s = time.monotonic() + 60.0
    while any(Path(f"/proc/{one}").exists() for one in children):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.mark.processes
async def test_apps_connect_to_the_printed_server_and_gateway(started):
    run = started("--no-town", "--origin=http://localhost:8000")
    gateway = run.address().partition("map/#")[0]
    (line,) = [line for line in run.lines if line.startswith("server ")]
    found = re.fullmatch(r"server (\S+), area (\S+), token (\S+)\n", line)
    async with nearcast.connect(found[1], token=found[3]) as client:
        device = await client.attach("courier-7", lon=14.50, lat=35.89)
        assert ",".join(f"{one:.6f}" for one in device.frame.area) == found[2]
    headers = {"Origin": "http://localhost:8000", "Authorization": f"Bearer {found[3]}"}
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{gateway}v1/status", headers=headers) as response,
    ):
        assert response.status == 200
        assert response.headers["Access-Control-Allow-Origin"] == "http://localhost:8000"


@pytest.mark.slow
@pytest.mark.processes
def test_a_gateway_without_a_port_is_reported(started):
    first = started("--no-town")
    port = first.address().partition("//")[2].partition("/")[0].rpartition(":")[2]
    second = subprocess.run(
        [sys.executable, "-m", "cli", "dev", f"--port={port}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert second.returncode == 1
    assert f"port is {port}, must be free" in second.stderr
    output, status = first.end(signal.SIGINT)
    assert (output, status) == ("ended\n", 0)
