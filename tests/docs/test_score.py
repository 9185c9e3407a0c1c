"""What docs/sdk.md says of scores and docs/operations.md of areas, against a server and its frame."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import nearcast
from nearcast import GeoObject, TopK
from safe_region.earth.distortion import distortion
from safe_region.earth.frame import Area, Frame
from server.settings import load_settings
from tests.support.geodesics import step_from
from tests.support.servers import serving

DOCS = Path(__file__).resolve().parents[2] / "docs"
SDK = (DOCS / "sdk.md").read_text()
OPERATIONS = (DOCS / "operations.md").read_text()
AREAS = dict(re.findall(r"(Malta|Italy)\s+\(([\d.,]+);", SDK))
ROWS = re.findall(r"^\| `(TopK\(.*\))` \| (\w+) \| ([\d.]+) \| ([\d.]+) \| (\w+) \|$", SDK, re.MULTILINE)
HERE = (14.48, 35.94)


@pytest.fixture(scope="module")
def near_and_far():
    """Where the example's two objects are: 0.2 km and 9 km to the west, on the ground."""
    return [step_from(*HERE, 1.5 * math.pi, metres) for metres in (200.0, 9_000.0)]


@pytest.mark.parametrize("name", ["Malta", "Italy"])
async def test_the_example_has_these_scores(tmp_path, near_and_far, name):
    (near, far), rows = near_and_far, [row for row in ROWS if row[1] == name]
    assert len(rows) == 3
    settings = load_settings({"area": AREAS[name], "store": str(tmp_path / "store.db"), "port": 0})
    async with serving(settings) as server, nearcast.connect(f"127.0.0.1:{server.port}") as client:
        new = [GeoObject({"pizza", "pasta"}, *near, 3600.0), GeoObject({"pizza"}, *far, 3600.0)]
        ids = dict(zip(await client.publisher().publish(new), ("near", "far"), strict=True))
        device = await client.attach("d", lon=HERE[0], lat=HERE[1])
        for text, _, near_score, far_score, first in rows:
            spec = eval(text, {"TopK": TopK})  # noqa: S307 - a line of our own documentation
            subscription = await device.subscribe(spec)
            matches = {ids[match.object.id]: match for match in subscription.results()}
            assert next(iter(matches)) == first
            scores = [f"{matches[one].score:.3f}" for one in ("near", "far")]
            assert scores == [near_score, far_score], text
            for one, metres in (("near", 200.0), ("far", 9_000.0)):
                assert matches[one].distance_m == pytest.approx(metres, rel=1e-5)


def test_the_diagonals():
    found = {name: Frame.of(Area(*map(float, text.split(",")))).maxdist_m for name, text in AREAS.items()}
    assert f"its diagonal is {found['Malta'] / 1000:.0f} km" in SDK
    assert f"(6.6,35.4,18.6,47.1; {found['Italy'] / 1000:,.0f} km)" in SDK


SIZES = [
    (float(lat), float(degrees), float(km.replace(",", "")))
    for lat, degrees, km in re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d,]+) \|$", OPERATIONS, re.MULTILINE)
]


def square(lat, degrees):
    half, wide = degrees / 2.0, degrees / 2.0 / math.cos(math.radians(lat))
    return Frame.of(Area(-wide, lat - half, wide, lat + half))


@pytest.mark.parametrize(("lat", "degrees", "km"), SIZES)
def test_areas_of_these_sizes_are_off_by_1_percent(lat, degrees, km):
    for hemisphere in (1.0, -1.0):
        assert distortion(square(hemisphere * lat, degrees)).error <= 0.01
        assert distortion(square(hemisphere * lat, 1.05 * degrees)).error > 0.01
    assert km == pytest.approx(square(lat, degrees).y_m_per_deg * degrees / 1000.0, abs=10.0, rel=0.025)


def test_there_are_sizes():
    assert len(SIZES) == 11


async def test_a_large_area_is_warned_of_when_a_server_starts(tmp_path, caplog):
    for name, text in AREAS.items():
        caplog.clear()
        settings = load_settings({"area": text, "store": str(tmp_path / f"{name}.db"), "port": 0})
        async with serving(settings):
            ours = [one for one in caplog.records if one.name != "server.store.sqlite_version"]
            warnings = [one.getMessage() for one in ours if one.levelname == "WARNING"]
        (shown,) = re.findall(r"```\n(the distances of rankings .*?)\n```", OPERATIONS, re.DOTALL)
        assert warnings == ([shown.replace("\n", " ")] if name == "Italy" else [])
