"""Points from files of all kinds, through Spark."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.parameters.traces import TraceOptions
from simulator.traces.errors import TraceError
from simulator.traces.reading import SETTINGS, check_files, read_points, source_name
from tests.simulator.maps.test_extracts import extract
from tests.simulator.traces.trace_files import BEGIN_S, iso, walk, write, write_csv, write_gpx


@pytest.fixture(scope="module", autouse=True)
def settings(spark):
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def read(spark, *paths, **options):
    frame = read_points(spark, paths, TraceOptions(**options))
    rows = frame.orderBy("source", "vehicle", "trip", "block", "row").collect()
    return [row.asDict() for row in rows]


def where(rows):
    return [(row["t_ms"], round(row["lon"], 6), round(row["lat"], 6)) for row in rows]


EXPECTED = [(seconds * 1000, round(lon, 6), round(lat, 6)) for seconds, lon, lat in walk(3)]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("vehicle,time,lon,lat", lambda t, x, y: (7, t, x, y)),
        ("Taxi_ID,Timestamp,Longitude,Latitude", lambda t, x, y: (7, iso(t), x, y)),
        ("cab,t_ms,lon_e6,lat_e6", lambda t, x, y: (7, t * 1000, round(x * 1e6), round(y * 1e6))),
        ("y,x,t,id", lambda t, x, y: (y, x, t * 1000, 7)),
        (
            "device,datetime,lng,lat",
            lambda t, x, y: (7, iso(t).replace("T", " ").removesuffix("Z"), x, y),
        ),
        ("user,unix_time,lon,lat,speed", lambda t, x, y: (7, t * 1_000_000, x, y, 3)),
        ("id,time,lon,lat,id", lambda t, x, y: (7, t, x, y, 8)),
        ("ID,time,lon,lat,id,Time", lambda t, x, y: (7, t, x, y, 8, 9)),
    ],
)
def test_columns_by_name(spark, tmp_path, header, row):
    path = write_csv(tmp_path / "a.csv", [row(*point) for point in walk(3)], header)
    rows = read(spark, path)
    assert where(rows) == EXPECTED
    assert {(one["source"], one["vehicle"], one["trip"]) for one in rows} == {("a", "7", "")}


def test_trips(spark, tmp_path):
    rows = [(7, "b", *point) for point in walk(2)] + [(7, "a", *point) for point in walk(1)]
    path = write_csv(tmp_path / "a.csv", rows, "taxi,trip,time,lon,lat")
    assert [row["trip"] for row in read(spark, path)] == ["a", "b", "b"]
    assert [row["trip"] for row in read(spark, path, by="vehicle")] == [""] * 3


def test_unreadable_values_are_null(spark, tmp_path):
    rows = [
        ("x", 1, 2),
        ("", 1, 2),
        (BEGIN_S, "east", ""),
        ("2023-99-99", 1, 2),
        (-5, 1, 2),
        ("1e300", 1, 2),
        ("07:15:30", 1, 2),
        ("T07:15", 1, 2),
    ]
    path = write_csv(tmp_path / "a.csv", rows, "time,lon,lat")
    found = read(spark, path)
    assert [row["t_ms"] for row in found] == [None, None, BEGIN_S * 1000, *[None] * 5]
    assert (found[2]["lon"], found[2]["lat"]) == (None, None)


def test_files_without_a_header(spark, tmp_path):
    rows = [(lat, lon, 0, seconds) for seconds, lon, lat in walk(3)]
    path = write_csv(tmp_path / "new_abc.txt.gz", rows, None)
    found = read(spark, path, columns="lat,lon,_,time")
    assert where(found) == EXPECTED
    assert {one["vehicle"] for one in found} == {"new_abc"}


def test_whole_trips_in_a_row(spark, tmp_path):
    places = [[lon, lat] for _, lon, lat in walk(3)]
    rows = [
        ("T1", 9, BEGIN_S, json.dumps(places)),
        ("T2", 9, BEGIN_S, "[]"),
        ("T3", 9, BEGIN_S, "nothing"),
    ]
    path = write_csv(tmp_path / "a.csv", rows, "TRIP_ID,TAXI_ID,TIMESTAMP,POLYLINE")
    found = read(spark, path, polyline_step_s=10.0)
    assert where(found) == EXPECTED
    assert {(one["vehicle"], one["trip"]) for one in found} == {("9", "T1")}


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_parquet(spark, tmp_path, unit):
    points, scale = walk(3), {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    table = {
        "cab": pa.array([1, 1, 1], pa.int16()),
        "t": pa.array([t * scale for t, *_ in points], pa.timestamp(unit, "UTC")),
        "lon_e6": pa.array([round(lon * 1e6) for _, lon, _ in points], pa.int32()),
        "lat_e6": pa.array([round(lat * 1e6) for *_, lat in points], pa.int32()),
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table), path)
    assert where(read(spark, path)) == EXPECTED


def test_several_files_of_several_kinds(spark, tmp_path):
    paths = [
        write_gpx(tmp_path / "a b.gpx", [[walk(3)]]),
        write_gpx(tmp_path / "c.gpx.gz", [[walk(2)]]),
        write_csv(tmp_path / "d.csv", [(1, *point) for point in walk(1)]),
    ]
    found = read(spark, *paths)
    assert [one["source"] for one in found] == ["a b"] * 3 + ["c"] * 2 + ["d"]
    assert where(found[:3]) == EXPECTED


def failure(spark, path, **options):
    with pytest.raises(TraceError) as raised:
        read_points(spark, [path], TraceOptions(**options))
    return str(raised.value)


def test_files_that_cannot_be_used(spark, tmp_path):
    assert failure(spark, tmp_path / "a.csv") == f"file {tmp_path / 'a.csv'} does not exist"
    (tmp_path / "b.csv").mkdir()
    assert failure(spark, tmp_path / "b.csv").endswith("is not a file")
    assert "its name must end in one of .gpx, " in failure(spark, write(tmp_path / "a.kml", "x"))
    assert failure(spark, write(tmp_path / "e.csv", "")).endswith("is empty")
    path = write_csv(tmp_path / "n.csv", [], "when,lon,lat")
    assert failure(spark, path).startswith(f"{path}: no column for the time: must be one of time, t, ")
    assert failure(spark, write(tmp_path / "p.parquet", "x")).startswith(
        f"{tmp_path / 'p.parquet'} cannot be read"
    )
    path = write(tmp_path / "l.csv", b"time,lon,l\xe4t\n")
    assert failure(spark, path) == f"{path} is not UTF-8 text (invalid continuation byte)"
    path = write_csv(tmp_path / "p.csv", [], "time,lon,latitud")
    assert "no column for the latitude" in failure(spark, path)
    assert "there are lat, lon" in failure(spark, path, columns="lat,lon")


@pytest.mark.parametrize("other", ["x/a.csv", "a.txt", "a.gpx.gz"])
def test_the_same_name_twice(tmp_path, other):
    (tmp_path / "x").mkdir()
    paths = [write(tmp_path / name, "time,lon,lat") for name in ("a.csv", other)]
    with pytest.raises(TraceError, match=r"^a is the name of several files, apart from their suffixes"):
        check_files(paths)


@pytest.mark.parametrize(
    "name", ["_b.csv", ".b.csv", "T10:00:00.gpx", "ride[1].gpx", "a{1}.csv", "a*.csv", "[x]/a.csv"]
)
def test_names_that_spark_would_not_take_literally(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with pytest.raises(TraceError) as raised:
        check_files([write(path, "time,lon,lat")])
    assert str(raised.value) == (
        f"the path is {path}, must be without any of *?[]{{}}\\, and its last part must have no : and "
        "not begin with _ or a dot: rename the file"
    )


@pytest.mark.parametrize(
    ("name", "columns", "count", "lons"),
    [
        ("porto_taxi_1000.parquet", None, 47_328, (-8.8, -8.3)),
        ("raw/porto_train_1000.csv.gz", None, 47_328, (-8.8, -8.3)),
        ("raw/cabspotting_cab4.txt.gz", "lat,lon,occ,time", 8_704, (-123.0, -122.0)),
        ("raw/osm_public_traces_tempe.gpx.gz", None, 5_000, (-112.0, -111.0)),
    ],
)
def test_real_files(spark, name, columns, count, lons):
    path = extract(name, "traj")
    frame = read_points(spark, [path], TraceOptions(columns=columns))
    assert frame.count() == count
    assert frame.where(f"t_ms IS NULL OR lon NOT BETWEEN {lons[0]} AND {lons[1]}").count() < count / 1000


def test_names_of_files(tmp_path):
    assert source_name(tmp_path / "a.b.CSV.gz") == "a.b"
    assert source_name(tmp_path / "a.GPX") == "a"
