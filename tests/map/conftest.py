"""One browser for all tests of the page; a town with devices for each."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from playwright.async_api import async_playwright

from nearcast import GeoObject, TopK, connect
from simulator.recorded_map import encoded
from tests.gateway.town import a_town
from tests.support.identity import token

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AREA = (14.0, 35.0, 15.0, 36.0)
PATIENCE_S = 120.0
"""Nothing takes that long: who waits longer waits for ever."""


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser():
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium, or Chrome")
    async with async_playwright() as tools:
        # A container's root has no sandbox; the page is our own file.
        browser = await tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


class Opened:
    """A page of the map, and what it did.

    Parameters
    ----------
    page
        The page.
    town
        The server and the gateway.
    """

    def __init__(self, page, town):
        self.page, self.town = page, town
        self.requests, self.messages = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.messages.append(str(error)))

    def _note(self, message):
        if message.type == "error":
            self.messages.append(message.text)

    async def go(self, fragment=""):
        who = token("somebody", "operator", "publisher", "gateway")
        await self.page.goto(f"{self.town.address('/map/')}#token={who}&{fragment}")

    async def until(self, condition, argument=None):
        """Wait until an expression of the page is true.

        Playwright's own wait evaluates text in the page, which the policy of the page refuses.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not await self.page.evaluate(condition, argument):  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.05)

    async def figure(self, name):
        """Return a number of the card of figures."""
        await self.until(f"document.querySelector('[data-figure={name}]')")
        text = await self.page.text_content(f"[data-figure={name}]")
        return int(text.replace(",", ""))

    async def rows(self):
        """Return the ids of the objects in the result of the chosen device."""
        found = await self.page.query_selector_all(".results tr.result")
        return [int(await one.get_attribute("data-object")) for one in found]


@pytest_asyncio.fixture(loop_scope="package")
async def town(tmp_path):
    async with a_town(tmp_path, map_file=run_file(tmp_path)) as town:
        yield town


@pytest_asyncio.fixture(loop_scope="package")
async def opened(browser, town):
    size = {"width": 1280, "height": 720}
    # Without transitions of colours, whose contrast would depend on when it is measured.
    context = await browser.new_context(viewport=size, color_scheme="light", reduced_motion="reduce")
    found = Opened(await context.new_page(), town)
    yield found
    await context.close()
    assert found.messages == []


@contextlib.asynccontextmanager
async def client_of(town, *roles):
    """A client of the town's server."""
    who = token("somebody", *roles)
    async with connect(f"127.0.0.1:{town.server.port}", token=who) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="package")
async def walkers(town):
    """Five devices with a subscription each, and forty objects."""
    async with (
        client_of(town, "publisher") as publishing,
        publishing.publisher() as publisher,
        client_of(town, "gateway") as client,
    ):
        await publisher.publish(
            [
                GeoObject(lon=14.3 + 0.01 * i, lat=35.5, keywords=("tea", f"odd{i % 2}"), ttl_s=3600)
                for i in range(40)
            ]
        )
        async with client.fleet() as fleet:
            devices = [await fleet.attach(f"car-{i}", lon=14.31 + 0.05 * i, lat=35.501) for i in range(5)]
            for device in devices:
                await device.subscribe(TopK(("tea",), k=2))
            yield devices


def degrees(*values):
    return np.round(np.array(values) * 1e7).astype(np.int32)


def uints(*values):
    return np.array(values, np.uint32)


RUN = (
    {
        "name": "Test Town",
        "area": [14.4, 35.4, 14.6, 35.6],
        "start_ms": 1_000_000,
        "step_ms": 1000,
        "steps": 101,
        "device_ids": ["walker"],
        "road_classes": ["primary"],
        "keywords": ["books", "tea"],
        "ring_vertices": 3,
        "water": [],
    },
    {
        "road_lon1": degrees(14.4),
        "road_lat1": degrees(35.5),
        "road_lon2": degrees(14.6),
        "road_lat2": degrees(35.5),
        "road_class": np.zeros(1, np.uint8),
        "track_lon": degrees(*np.linspace(14.45, 14.55, 101)),
        "track_lat": degrees(*[35.5] * 101),
        "object_ms": uints(0, 40_000),
        "object_end_ms": uints(100_000, 60_000),
        "object_lon": degrees(14.5, 14.52),
        "object_lat": degrees(35.51, 35.52),
        "keyword_object": uints(0, 1),
        "keyword_number": uints(1, 0),
        "report_ms": uints(0, 50_000),
        "report_device": uints(0, 0),
        "report_lon": degrees(14.45, 14.5),
        "report_lat": degrees(35.5, 35.5),
        "region_ms": uints(0, 50_000),
        "region_device": uints(0, 0),
        "ring_lon": degrees(14.44, 14.46, 14.45, 14.49, 14.51, 14.5),
        "ring_lat": degrees(35.49, 35.49, 35.51, 35.49, 35.49, 35.51),
    },
)
"""Two objects: the second one from second 40 to 60."""


def run_file(folder: Path, **columns) -> Path:
    """Write a recorded run: a device that drives east and reports twice, two objects, a road."""
    path = folder / "run.ncmap"
    header, usual = RUN
    path.write_bytes(encoded(header, {**usual, **columns}))
    return path
