"""The page of a replay in a browser: charts are drawn, nothing is asked for, nothing complains."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from playwright.async_api import Browser, async_playwright

from nearcast import Counters
from server.settings import load_settings
from simulator.replay.audit import Mismatch
from simulator.replay.histogram import Histogram
from simulator.replay.options import ReplayOptions
from simulator.replay.processes import Replayed
from simulator.replay.recording import Recording
from simulator.replay.replay import Replay
from simulator.replay.report import ReplayReport
from simulator.replay.timeline import Moment, Timeline
from simulator.run_report.page import write_page
from tests.support.servers import serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

CHARTS = {"reports", "silence", "bytes", "publications", "mismatches", "latency", "map"}

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs a browser: apt-get install chromium, or Chrome"
)


@pytest.fixture
async def browser() -> Iterator[Browser]:
    async with async_playwright() as tools:
        # A container's root has no sandbox; the page is our own file.
        browser = await tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture
async def replayed(simulation):
    settings = load_settings(
        {"area": list(simulation.world.area), "store": ":memory:", "port": 0, "virtual_time": True}
    )
    async with serving(settings) as server:
        options = ReplayOptions(f"127.0.0.1:{server.port}", audit_every=5)
        replay = Replay(Recording(simulation.path), options)
        return Replayed(await replay.run(), replay.track, replay.range_track, replay.log)


async def opened(browser, path, scheme="light"):
    """A page, what it asked for, what it said."""
    page = await browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    requests, messages = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    await page.goto(path.as_uri())
    return page, requests, messages


@needs_browser
async def test_a_page_of_a_run(simulation, replayed, browser, tmp_path):
    path = tmp_path / "new" / "replay.html"
    write_page(simulation.path, replayed, path)
    assert list(path.parent.iterdir()) == [path]
    page, requests, messages = await opened(browser, path)
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    assert messages == []
    drawn = await page.locator("svg[data-chart]").all()
    assert {await one.get_attribute("data-chart") for one in drawn} == CHARTS
    for one in drawn:
        box = await one.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
        assert await one.locator("path").count() > 1
    # The map has pixels, of roads and objects, and outlines.
    assert await page.locator("svg[data-chart=map] image").count() > 0
    head = await page.locator(".verdict").inner_text()
    assert head == f"{replayed.report.audited:,} lists audited, 0 mismatches"
    assert simulation.world.name in await page.title()


@needs_browser
async def test_light_and_dark(simulation, replayed, browser, tmp_path):
    """What is drawn follows the page's colours, text and lines alike."""
    path = tmp_path / "replay.html"
    write_page(simulation.path, replayed, path)
    read = """() => {
        const color = (what, name) => getComputedStyle(document.querySelector(what))[name];
        return [color('body', 'backgroundColor'), color('svg[data-chart=reports] text', 'fill'),
                color('figure', 'backgroundColor')];
    }"""
    found = []
    for scheme in ("light", "dark"):
        page, _, _ = await opened(browser, path, scheme)
        found.append(await page.evaluate(read))
    light, dark = found
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert "var(--" in path.read_text()
    for sentinel in ("#010101", "#020202", "#050505"):
        assert sentinel not in path.read_text()


@needs_browser
async def test_a_page_with_mismatches_and_a_hostile_name(simulation, replayed, browser, tmp_path):
    """What comes from outside is text, whatever it says."""
    replayed.report.add_mismatch(Mismatch("<script>alert(1)</script>", 1, 7, (1, 2), (2,)))
    path = tmp_path / "replay.html"
    write_page(simulation.path, replayed, path)
    page, requests, messages = await opened(browser, path)
    assert messages == []
    assert len([url for url in requests if not url.startswith("data:")]) == 1
    assert "lists are wrong" in await page.locator(".verdict").inner_text()
    assert await page.locator("script").count() == 0
    assert "<script>alert(1)</script>" in await page.locator("details table").inner_text()


def test_a_histogram_is_good_to_two_percent():
    drawn = np.random.default_rng(7).lognormal(2.0, 1.0, 5_000)
    found = Histogram()
    for value in drawn:
        found.add(float(value))
    for share in (0.0, 0.5, 0.9, 0.99, 1.0):
        exact = np.sort(drawn)[min(len(drawn) - 1, int(share * len(drawn)))]
        assert found.quantile_ms(share) == pytest.approx(exact, rel=0.02)
    assert np.isnan(Histogram().quantile_ms(0.5))
    found.add(0.0)
    found.add(1e12)
    assert found.total == len(drawn) + 2


@pytest.mark.parametrize("ticks", [1, 2, 3, 120, 121, 122, 1_000, 86_401])
def test_moments_lie_evenly_and_at_both_ends(ticks):
    timeline = Timeline(ticks, 1.0)
    due = [tick for tick in range(ticks) if timeline.is_due(tick)]
    assert due[0] == 0
    assert due[-1] == ticks - 1
    assert len(due) == min(ticks, 121)
    steps = {later - sooner for sooner, later in pairwise(due)}
    assert max(steps, default=0) - min(steps, default=0) <= 1


def test_reports_of_processes_are_added_up():
    def report(part):
        found = ReplayReport(devices=part, audited=10 * part, timeline=Timeline(2, 1.0))
        found.counters = Counters(moves=part, reports=1)
        found.latencies.add(5.0 * part)
        found.timeline.note(0, Moment())
        found.timeline.note(1, Moment(moves=part, reports=1))
        found.add_mismatch(Mismatch(f"device-{part}", 1, 9 - part, (), ()))
        return found

    whole = report(1)
    whole.merge(report(2))
    assert (whole.processes, whole.devices, whole.audited) == (2, 3, 30)
    assert whole.counters == Counters(moves=3, reports=2)
    assert whole.latencies.total == 2
    assert whole.timeline.moments == [Moment(), Moment(moves=3, reports=2)]
    assert [one.device_id for one in whole.mismatches] == ["device-2", "device-1"]
    other = report(1)
    other.timeline.note(5, Moment())
    with pytest.raises(ValueError, match="must be at the same ticks"):
        whole.merge(other)
