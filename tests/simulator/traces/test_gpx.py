"""Points of GPX files, without Spark."""

import gzip
import math

import pytest

from simulator.traces.errors import TraceError
from simulator.traces.gpx import time_ms, track_points
from simulator.traces.reading import gpx_batches
from tests.simulator.traces.trace_files import BEGIN_S, walk, write_gpx


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_tracks_and_segments(tmp_path, version):
    path = write_gpx(tmp_path / "a.gpx", [[walk(2), walk(1)], [walk(3, begin_s=500)]], version)
    found = list(track_points(path.read_bytes()))
    assert [(one.track, one.segment) for one in found] == [(0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 0)]
    assert [one.t_ms for one in found[:2]] == [BEGIN_S * 1000, (BEGIN_S + 10) * 1000]
    assert (found[1].lon, found[1].lat) == pytest.approx((14.501, 35.9))


def test_unreadable_values_are_none(tmp_path):
    points = [("yesterday", 14.5, 35.9), (BEGIN_S, "east", 35.9), ("", 14.5, 35.9)]
    found = list(track_points(write_gpx(tmp_path / "a.gpx", [[points]]).read_bytes()))
    assert [one.t_ms for one in found] == [None, BEGIN_S * 1000, None]
    assert math.isnan(found[1].lon)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-10-11T23:26:29Z", 1_697_066_789_000),
        ("2023-10-11T23:26:29.250Z", 1_697_066_789_250),
        ("2023-10-12T01:26:29+02:00", 1_697_066_789_000),
        (" 2023-10-11 23:26:29 ", 1_697_066_789_000),
        ("2023-13-11T23:26:29Z", None),
        ("0", None),
    ],
)
def test_times(text, expected):
    assert time_ms(text) == expected


@pytest.mark.parametrize("ending", [".gpx", ".gpx.gz"])
def test_a_file_that_is_cut_off(tmp_path, ending):
    content = write_gpx(tmp_path / f"a{ending}", [[walk(20)]]).read_bytes()
    with pytest.raises(TraceError, match=rf"^a{ending} "):
        list(gpx_batches(f"a{ending}", "a", content[: len(content) // 2]))


def test_other_xml():
    with pytest.raises(TraceError, match=r"^a\.gpx is not GPX: its root element is 'kml'$"):
        list(gpx_batches("a.gpx", "a", b"<kml></kml>"))


def test_batches_have_the_schema(tmp_path):
    content = gzip.compress(write_gpx(tmp_path / "a.gpx", [[walk(3)]]).read_bytes())
    (batch,) = gpx_batches("a.gpx.gz", "a", content)
    assert batch.column("trip").to_pylist() == ["0.0"] * 3
    assert batch.column("row").to_pylist() == [0, 1, 2]
