"""`nearcast simulate traces`."""

from contextlib import nullcontext

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException

from cli.app import app
from feeds.cluster import ClusterError
from safe_region.earth.frame import Area
from simulator.parameters.traces import TraceParameters
from simulator.simulation import load
from simulator.traces.columns import VEHICLES_TEXT
from simulator.traces.reading import unused_columns
from tests.simulator.traces.trace_files import walk, write_csv


def run(*arguments):
    return CliRunner().invoke(app, ["simulate", "traces", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "car"], "by is 'car', must be one of trip, vehicle"),
        (["--align", "x"], "align is 'x', must be one of clock, start"),
        (["--mode", "bus"], "mode is 'bus', must be one of car, bicycle, pedestrian"),
        (["--period-ms", 99], "period_ms is 99, must be within 100..3600000"),
        (["--gap-s", 0], "gap_s is 0.0, must be within 1"),
        (["--object-source", "texts"], "object_source is texts, which requires a texts_file"),
        (["--places", "p.csv"], "places_file is p.csv, which requires a map_file"),
        (["--area", "1,2,3"], "area is '1,2,3', must be west,south,east,north in degrees"),
        (["--area", "1,2,0,3"], "area longitudes are 1.0..0.0, must be increasing"),
        (["--area", "1,2,3,4", "--map", "m.csv"], "area is 1,2,3,4, which excludes a map_file"),
        (["--from", "soon"], "begin is 'soon', must be a time such as 2008-05-18"),
        (["--from", "2013-07-02", "--to", "2013-07-02"], "begin is 2013-07-02, must be before end"),
    ],
)
def test_parameters_outside_of_their_limits(tmp_path, arguments, message):
    path = write_csv(tmp_path / "a.csv", [])
    found = run(path, "--out", tmp_path / "out", *arguments)
    assert found.exit_code == 2
    assert message in found.output
    assert not (tmp_path / "out").exists()


def test_a_wrong_file_is_reported_before_spark_starts(monkeypatch, tmp_path):
    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: pytest.fail("it starts"))
    odd = tmp_path / "points.xls"
    odd.write_text("x")
    for path, message in (
        (odd, f"{odd} is not a file of traces: its name must end in one of "),
        (write_csv(tmp_path / "a.csv", [(1, 2)], header="vehicle,when"), "no column for the time"),
    ):
        found = run(path, "--out", tmp_path / "out")
        assert found.exit_code == 1
        assert message in found.output


def test_a_missing_file_and_a_missing_map(tmp_path):
    found = run(tmp_path / "none.csv")
    assert found.exit_code == 1
    assert f"file {tmp_path / 'none.csv'} does not exist" in found.output
    found = run(write_csv(tmp_path / "a.csv", []), "--map", tmp_path / "none.osm")
    assert found.exit_code == 1
    assert f"file {tmp_path / 'none.osm'} does not exist" in found.output


AIS = [(f"ship-{ship}", f"{ship}-1", *point) for point in walk(20) for ship in range(3)]
"""Three ships in turns, each on its way, in columns with names that nobody knows."""
UNUSED = (
    f"{{}}: unused columns: {{}}. No column has the vehicle, so all points belong to one: {VEHICLES_TEXT}"
)
QUICK = ("--objects=20", "--arrivals-per-s=0.01", "--place-count=10")


def write_parquet(path, names, rows):
    pq.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)
    return path


@pytest.fixture
def shared(monkeypatch, spark):
    """Let commands use the session of the tests."""
    monkeypatch.setattr("simulator.session.simulator_session", lambda *_: nullcontext(spark))


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_unused_columns_and_dropped_points_are_named(tmp_path):
    path = write_parquet(tmp_path / "ais.parquet", ("ship", "traj", "time", "lon", "lat"), AIS)
    found = run(path, "--out", tmp_path / "out", *QUICK)
    assert found.exit_code == 0, found.output
    (unused, dropped) = [line for line in found.stderr.splitlines() if line.startswith("warning: ")]
    assert unused == f"warning: {UNUSED.format('ais.parquet', 'ship, traj')}"
    assert dropped.startswith("warning: only 20 of 60 points were kept; 40 were dropped as 'duplicate'.")


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_columns_of_parquet_can_be_given_other_names(tmp_path):
    path = write_parquet(tmp_path / "ais.parquet", ("ship", "traj", "time", "lon", "lat"), AIS)
    found = run(path, "--out", tmp_path / "out", *QUICK, "--columns=vehicle,trip,time,lon,lat")
    assert found.exit_code == 0, found.output
    assert "warning: " not in found.output
    assert f"{tmp_path / 'out'}: 3 devices, 60 positions" in found.output
    found = run(path, "--out", tmp_path / "other", *QUICK, "--columns=vehicle,time,lon,lat")
    assert found.exit_code == 1
    assert (
        "--columns names 4 columns, must name 5: the file has ship, traj, time, lon, lat" in found.output
    )
    swapped = [(lat, lon, t_s, ship) for ship, _, t_s, lon, lat in AIS]
    path = write_parquet(tmp_path / "swapped.parquet", ("lon", "lat", "time", "x"), swapped)
    found = run(path, "--out", tmp_path / "swapped", *QUICK, "--columns=lat,lon,time,vehicle")
    assert f"{tmp_path / 'swapped'}: 3 devices, 60 positions" in found.output, found.output


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("error", [ClusterError, PySparkException])
def test_the_hosts_of_a_cluster_are_checked(tmp_path, monkeypatch, error):
    checked = []

    def check_hosts(_spark, *, written):
        checked.extend(written)
        raise error("host h: another program")

    monkeypatch.setattr("simulator.simulation.is_local", lambda _master: False)
    monkeypatch.setattr("simulator.simulation.check_hosts", check_hosts)
    found = run(
        write_csv(tmp_path / "a.csv", [(1, *point) for point in walk(5)]), "--out", tmp_path / "out"
    )
    assert found.exit_code == 1
    assert "Error: host h: another program" in found.output
    assert checked == [tmp_path / "out"]


def test_files_with_the_same_columns_are_warned_of_once(tmp_path):
    for name in ("a", "b", "c"):
        rows = [(*point, 0) for point in walk(5)]
        write_csv(tmp_path / f"{name}.csv", rows, header="time,lon,lat,occupied")
    options = TraceParameters()
    assert unused_columns(sorted(tmp_path.glob("*.csv")), options) == [
        UNUSED.format("a.csv and 2 more files", "occupied")
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_the_arrivals_of_many_years_are_refused_with_figures(tmp_path):
    rows = [(1, *point) for point in walk(5)] + [(2, *point) for point in walk(5, begin_s=450_000_000)]
    path = write_csv(tmp_path / "years.csv", rows)
    found = run(path, "--out", tmp_path / "out", "--objects=20", "--place-count=10", "--period-ms=10000")
    assert found.exit_code == 1
    assert (
        f"{path}: traces span 5,208.3 days, in which 0.1 arrivals a second are 45,000,004 objects, must "
        "be at most 10,000,000: give --arrivals-per-s 0.02 or another rate, --align start, or --from and "
        "--to"
    ) in found.output
    given = run(
        path, "--out", tmp_path / "out", *QUICK[::2], "--arrivals-per-s=0.000001", "--align=start"
    )
    assert given.exit_code == 0, given.output


@pytest.mark.usefixtures("shared")
def test_of_points_all_over_the_earth_a_part_can_be_chosen(tmp_path):
    rows = [(1, *point) for point in walk(20)] + [
        (2, t_s, lon - 114.0, lat) for t_s, lon, lat in walk(20)
    ]
    path = write_csv(tmp_path / "coast.csv", rows)
    found = run(path, "--out", tmp_path / "out", *QUICK)
    assert found.exit_code == 1
    assert (
        "degrees of longitude, must span at most 90: select a part with --area west,south,east,north"
        in found.output
    )
    found = run(path, "--out", tmp_path / "out", *QUICK, "--area=14,35,15,36.5")
    assert found.exit_code == 0, found.output
    assert "  20 outside\n" in found.output
    assert f"{tmp_path / 'out'}: 1 devices, 20 positions" in found.output
    assert load(tmp_path / "out").world.area == Area(14.0, 35.0, 15.0, 36.5)
    assert run(path, "--out", tmp_path / "out", *QUICK, "--area=-120,0,0,50").exit_code == 1
