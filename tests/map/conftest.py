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
from safe_region.earth.frame import Area, Frame
from simulator.recorded_map.columns import encoded
from simulator.recorded_map.devices import NO_OBJECT
from simulator.recorded_map.writer import plane
from tests.gateway.town import a_town
from tests.support.identity import token

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AREA = (14.0, 35.0, 15.0, 36.0)
PATIENCE_S = 120.0
"""Nothing takes that long."""


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

    async def table(self):
        """Return the margin, and the texts of the rows of the result and the buffer."""
        return await self.page.evaluate(
            """() => [
                document.querySelector("#chosen .figures.three dd").textContent,
                [...document.querySelectorAll(".results tbody tr")].map(({ cells }) => [
                    cells[0].textContent, cells[1].firstChild.textContent,
                    ...[cells[1].children[0], ...[...cells].slice(2)].map((one) => one.textContent),
                ]),
            ]"""
        )


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


FRAME = Frame.of(Area(14.4, 35.4, 14.6, 35.6))
PLACES = ((14.5, 35.51), (14.52, 35.52))
"""The positions of the two objects."""

RUN = (
    {
        "name": "Test Town",
        "area": [14.4, 35.4, 14.6, 35.6],
        "plane": plane(FRAME),
        "start_ms": 1_000_000,
        "period_ms": 1000,
        "step_ms": 1000,
        "steps": 101,
        "device_ids": ["walker"],
        "logged": [0],
        "specs": {
            0: {"top_k": {"keywords": ["tea"], "k": 1, "alpha": 0.5, "distance_scale_m": 10_000.0}}
        },
        "object_keys": {0: "kiosk", 1: "cafe"},
        "road_classes": ["primary"],
        "keywords": ["books", "tea"],
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
        "object_lon": degrees(*(place[0] for place in PLACES)),
        "object_lat": degrees(*(place[1] for place in PLACES)),
        "keyword_object": uints(0, 1),
        "keyword_number": uints(1, 0),
        "moves": np.arange(101, dtype=np.uint32),
        "report_ms": uints(50_000),
        "report_device": uints(0),
        "report_lon": degrees(14.5),
        "report_lat": degrees(35.5),
        "holding_ms": uints(0, 50_000),
        "holding_device": uints(0, 0),
        "holding_lon": degrees(14.45, 14.5),
        "holding_lat": degrees(35.5, 35.5),
        "holding_bound_m": np.array([np.inf, 9_000.0], np.float32),
        "holding_is_part": np.zeros(2, np.uint8),
        "holding_end": uints(1, 2),
        "holding_next": uints(NO_OBJECT, NO_OBJECT),
        "held_object": uints(0, 1),
        "held_text_m": np.array([500.0, 0.0], np.float32),
    },
)
"""Two objects: the second one from second 40 to 60. The device holds it after its report at second 50."""


def run_file(folder: Path, fields=None, **columns) -> Path:
    """Write a recorded run: a device that drives east and reports once, two objects, a road."""
    path = folder / "run.ncmap"
    header, usual = RUN
    path.write_bytes(encoded({**header, **(fields or {})}, {**usual, **columns}))
    return path
