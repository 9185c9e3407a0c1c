"""The live map in a real browser, beside a real server and a real gateway."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from nearcast import Boolean, Circle, GeoObject, Rectangle
from tests.map.conftest import FRAME, PLACES, client_of, degrees, run_file, uints
from tests.support.identity import token

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "clients" / "typescript" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [pytest.mark.processes, pytest.mark.asyncio(loop_scope="package")]


async def test_points_are_those_of_the_server(opened, walkers):
    await opened.go()
    await opened.until("document.querySelector('[data-figure=view-objects]')?.textContent === '40'")
    async with client_of(opened.town, "operator") as client:
        status = await client.status()
    attached = status.gauges["devices.IN_SYNC"]
    assert attached == len(walkers)
    assert await opened.figure("attached") == attached
    assert await opened.figure("objects") == status.gauges["objects"]
    drawn = str(attached + status.gauges["objects"])
    await opened.until("drawn => document.getElementById('points').dataset.drawn === drawn", drawn)


@pytest.mark.usefixtures("walkers")
async def test_nothing_is_requested_from_another_address(opened):
    await opened.go("device=car-0")
    await opened.until("document.querySelector('.results tr.result')")
    port = opened.town.gateway.port
    for address in opened.requests:
        assert address.startswith(
            (f"http://127.0.0.1:{port}/", f"ws://127.0.0.1:{port}/", "blob:", "data:")
        )
    assert any(address.endswith("/v1/watch") for address in opened.requests)
    assert "token" not in "".join(opened.requests)
    assert "token" not in await opened.page.evaluate("location.hash")


async def test_a_result_changes_when_an_object_is_published_beside_the_device(opened, walkers):
    await opened.go("device=car-0")
    await opened.until("document.querySelectorAll('.results tr.result').length === 2")
    before = await opened.rows()
    await opened.page.fill("#words", "tea")
    await opened.page.click("#publish")
    # The map shows the chosen device in its middle, or near.
    await opened.page.click("#here")
    await opened.until("/^Object \\d+ is published/.test(document.getElementById('hint').textContent)")
    text = await opened.page.text_content("#hint")
    published = int(text.split()[1])
    assert published not in before
    await opened.until(
        "id => document.querySelector(`.results tr.result[data-object='${id}']`)", str(published)
    )
    results = [match.object.id for match in walkers[0].subscriptions[0].results()]
    assert await opened.rows() == results


async def test_objects_beyond_a_range_are_no_matches(opened, walkers):
    ranges = (Circle(4_000.0), Rectangle(5_000.0, 8_000.0))
    for number, where in enumerate(ranges):
        held = await walkers[0].subscribe(Boolean({"tea"}, where, moving=True), name=f"range-{number}")
        results = [match.object.id for match in held.results()]
        assert len(held.region.buffer) > len(results) > 1
        await opened.go("device=car-0")
        await opened.until("document.querySelector('#chosen select')")
        await opened.page.select_option("#chosen select", label=f"range-{number}")
        matches = f"{len(results)} matches, and "  # the ranges have different numbers
        await opened.until(
            "text => document.querySelector('.results caption')?.textContent.startsWith(text)", matches
        )
        assert await opened.rows() == results
        assert await opened.page.query_selector(".results tr.buffer") is not None


@pytest.mark.usefixtures("walkers")
async def test_the_page_has_a_device_of_its_own(opened):
    await opened.go()
    await opened.until("document.querySelector('[data-figure=attached]')?.textContent === '5'")
    await opened.page.fill("#words", "tea")
    await opened.page.click("#subscribe")
    await opened.page.click("#here")
    await opened.until("document.querySelectorAll('.results tr.result').length === 3")
    assert (await opened.page.input_value("#device")).startswith("map-")
    await opened.until("document.querySelector('[data-figure=attached]')?.textContent === '6'")


@pytest.mark.usefixtures("walkers")
async def test_filters_are_in_the_address(opened):
    await opened.go("keyword=odd1&hide=devices&view=14.5,35.5,9")
    await opened.until("document.querySelector('[data-figure=view-objects]')?.textContent === '20'")
    await opened.until("document.getElementById('points').dataset.drawn === '20'")
    assert await opened.page.input_value("#keyword") == "odd1"
    assert not await opened.page.is_checked("input[name=devices]")
    await opened.page.fill("#keyword", "")
    await opened.page.press("#keyword", "Tab")
    await opened.page.check("input[name=devices]")
    await opened.until("document.getElementById('points').dataset.drawn === '45'")
    fragment = await opened.page.evaluate("location.hash")
    assert "keyword" not in fragment
    assert "hide" not in fragment
    assert "view=14.5" in fragment


async def seek(opened, second):
    """Move the slider of the run, which is 100 seconds long."""
    await opened.page.evaluate(
        "value => { const moment = document.getElementById('moment'); moment.value = value;"
        " moment.dispatchEvent(new Event('input')); }",
        10 * second,
    )


async def test_the_slider_of_a_recorded_run(opened):
    await opened.go("run=0&device=walker")
    await opened.until("document.getElementById('connection').dataset.state === 'recorded'")
    assert [await opened.figure(name) for name in ("objects", "moves", "reports")] == [1, 0, 0]
    await seek(opened, 50)
    assert [await opened.figure(name) for name in ("objects", "moves", "reports")] == [2, 50, 1]
    assert "run=50" in await opened.page.evaluate("location.hash")
    await opened.page.focus("#moment")
    await opened.page.keyboard.press("End")
    assert [await opened.figure(name) for name in ("objects", "moves", "reports")] == [0, 100, 1]
    await opened.page.click("#chosen button")  # the server does not know this device
    await opened.page.click("#live")
    await opened.until("document.getElementById('connection').dataset.state === 'live'")
    assert await opened.figure("attached") == 0


async def test_a_device_of_a_recorded_run_has_its_result(opened):
    await opened.go("run=0&device=walker")
    await opened.until("document.querySelector('.results tr.result')")
    assert await opened.rows() == [0]  # the other object has not been published
    assert "No report since it attached" in await opened.page.text_content("#chosen")
    assert "every object that qualifies" in await opened.page.text_content("#chosen")
    await seek(opened, 50)
    assert await opened.table() == expected_table(14.5, 9_000.0)
    await seek(opened, 55)
    assert await opened.table() == expected_table(14.505, 9_000.0)
    await seek(opened, 60)  # the second object has expired
    assert await opened.rows() == [0]
    assert await opened.page.query_selector(".results tr.buffer") is None


def expected_table(lon, reach_m):
    """Return the margin, and per row rank, key, keyword, distance, text and score at a position."""
    here = FRAME.project(lon, 35.5)
    texts_m = (500.0, 0.0)
    lengths = sorted(
        (math.dist(here, FRAME.project(*place)) + text_m, number)
        for number, (place, text_m) in enumerate(zip(PLACES, texts_m, strict=True))
    )
    moved_m = math.dist(here, FRAME.project(14.5, 35.5))
    rows = [
        [
            str(rank),
            ("kiosk", "cafe")[number],
            ("tea", "books")[number],
            f"{length_m - texts_m[number]:,.0f} m",
            f"{texts_m[number]:,.0f} m",
            f"{0.5 * length_m / 10_000.0:.3f}",
        ]
        for rank, (length_m, number) in enumerate(lengths, 1)
    ]
    return [f"{(reach_m - moved_m - lengths[0][0]) / 2:,.0f} m", rows]


async def test_the_end_of_the_record_of_a_device(opened, tmp_path):
    ended = np.array([np.inf, np.nan], np.float32)
    path = run_file(tmp_path, holding_bound_m=ended, holding_end=uints(1, 1))
    await opened.go()
    await opened.page.set_input_files("#open", path)
    await opened.until("document.getElementById('connection').dataset.state === 'recorded'")
    await opened.page.fill("#device", "walker")
    await opened.page.press("#device", "Enter")
    await opened.until("document.querySelector('.results tr.result')")
    await seek(opened, 50)
    assert "no result of this time" in await opened.page.text_content("#chosen")
    assert "1 report, 50 positions" in await opened.page.text_content("#chosen")


async def test_a_run_that_was_not_replayed_has_positions_only(opened, tmp_path):
    none = np.zeros(0, np.uint32)
    path = run_file(tmp_path, {"logged": [], "specs": {}}, report_ms=none, holding_ms=none)
    await opened.go()
    await opened.page.set_input_files("#open", path)
    await opened.until("document.querySelector('[data-figure=reports]')?.textContent === '\u2013'")
    assert await opened.page.is_hidden("#silence-card")
    await opened.page.fill("#device", "walker")
    await opened.page.press("#device", "Enter")
    assert "only its positions" in await opened.page.text_content("#chosen")


async def test_a_run_of_another_version_is_refused(opened, tmp_path):
    path = tmp_path / "old.ncmap"
    path.write_bytes(b"NCRUN001" + bytes(8))
    await opened.go()
    await opened.page.set_input_files("#open", path)
    await opened.until("document.getElementById('hint').textContent.includes('another version')")


@pytest.mark.usefixtures("walkers")
async def test_the_card_of_a_device_keeps_the_focus(opened):
    await opened.go("device=car-0")
    await opened.until("document.querySelector('.results tr.result')")
    await opened.page.focus("#chosen button")
    await opened.page.evaluate("document.querySelector('.results').id = 'before'")
    await opened.until("document.querySelector('.results') && !document.getElementById('before')")
    assert await opened.page.evaluate("document.activeElement.closest('#chosen') !== null")


@pytest.mark.usefixtures("walkers")
async def test_the_canvas_is_not_empty_after_a_change_of_its_size(opened):
    await opened.go()
    await opened.until("document.getElementById('points').dataset.drawn === '45'")
    await opened.page.evaluate(
        """() => {
            window.sizes = [];
            const points = document.getElementById("points");
            // Called after the page's own observer, before the browser shows the canvas.
            new ResizeObserver(() => {
                const { width, height } = points;
                const { data } = points.getContext("2d").getImageData(0, 0, width, height);
                window.sizes.push([width, data.some((value) => value !== 0)]);
            }).observe(points);
        }"""
    )
    await opened.until("window.sizes.length === 1")
    await opened.page.set_viewport_size({"width": 1200, "height": 720})
    await opened.until("window.sizes.length > 1")
    sizes = await opened.page.evaluate("window.sizes")
    assert sizes[0][0] > sizes[-1][0]
    assert all(is_drawn for _, is_drawn in sizes)


async def test_a_refused_token_is_requested_again(opened):
    await opened.page.goto(f"{opened.town.address('/map/')}#token=nonsense")
    await opened.until("!document.getElementById('token-form').hidden")
    assert await opened.page.is_hidden(".results")
    assert await opened.page.is_hidden("#recorded")
    assert [text for text in opened.messages if "401" not in text] == []  # the map file
    opened.messages.clear()
    await opened.page.fill("#token", token("somebody", "operator"))
    await opened.page.press("#token", "Enter")
    await opened.until("document.getElementById('connection').dataset.state === 'live'")
    await opened.until("!document.getElementById('recorded').hidden")


@pytest.mark.usefixtures("walkers")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_has_no_finding_at_level_a(opened, scheme):
    await opened.page.emulate_media(color_scheme=scheme)
    await opened.go("device=car-0")
    await opened.until("document.querySelector('.results tr.result')")
    await opened.page.click("#publish")
    await check_accessibility(opened)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_has_no_finding_in_a_recorded_run(opened, scheme):
    await opened.page.emulate_media(color_scheme=scheme)
    await opened.go("run=50&device=walker")
    await opened.until("document.querySelector('.results tr.buffer')")
    await check_accessibility(opened)


async def check_accessibility(opened):
    if not AXE.is_file():
        pytest.skip("the packages of the TypeScript SDK are not installed: make client-packages")
    await opened.page.evaluate(AXE.read_text())
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
    found = await opened.page.evaluate(
        "async tags => (await axe.run({runOnly: {type: 'tag', values: tags}})).violations", tags
    )
    shown = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
    assert shown == [], json.dumps(shown, indent=1)


@pytest.mark.usefixtures("walkers")
async def test_a_phone_shows_map_and_figures(opened):
    await opened.page.set_viewport_size({"width": 390, "height": 844})
    await opened.go("device=car-0")
    await opened.until("document.querySelector('.results tr.result')")
    width = await opened.page.evaluate("document.documentElement.scrollWidth")
    assert width == 390
    for name in ("#map", "#publish", "#chosen", "#device"):
        box = await opened.page.locator(name).bounding_box()
        assert box["width"] > 0
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


async def test_many_objects_are_shown_as_density(opened):
    objects = [
        GeoObject(("tea",), lon=14.3 + 0.0001 * (i % 3000), lat=35.5 + 0.01 * (i // 3000), ttl_s=3600)
        for i in range(15_001)
    ]
    async with client_of(opened.town, "publisher") as client, client.publisher() as publisher:
        ids = await publisher.publish(objects)
        await opened.go()
        await opened.until("document.getElementById('points').dataset.density === 'true'")
        assert await opened.figure("view-objects") == len(objects)
        assert await opened.page.get_attribute("#points", "data-drawn") == "0"
        await publisher.retract(ids[0])
        await opened.until("document.getElementById('points').dataset.density === 'false'")
        await opened.until("document.getElementById('points').dataset.drawn === '15000'")


async def test_a_file_of_a_recorded_run_with_many_objects(opened, tmp_path):
    count = 15_001
    path = run_file(
        tmp_path,
        object_ms=uints(*[0] * count),
        object_end_ms=uints(*[90_000] * (count - 1), 50_000),
        object_lon=degrees(*[14.5] * count),
        object_lat=degrees(*[35.51] * count),
    )
    await opened.go()
    await opened.page.set_input_files("#open", path)
    await opened.until("document.getElementById('points').dataset.density === 'true'")
    assert await opened.figure("objects") == count
    await opened.until("document.getElementById('points').dataset.drawn === '1'")
    await opened.page.focus("#moment")
    for _ in range(6):  # a tenth of the run each
        await opened.page.keyboard.press("PageUp")
    await opened.until("document.getElementById('points').dataset.density === 'false'")
    assert await opened.figure("objects") == count - 1
