"""`nearcast simulate traces`."""

import pytest
from click.testing import CliRunner

from cli.app import app
from tests.simulator.traces.trace_files import write_csv


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
        (["--object-source", "texts"], "object_source is texts, must go with a texts_file"),
        (["--places", "p.csv"], "places_file is p.csv, must go with a map_file"),
        (["--area", "1,2,3"], "area is '1,2,3', must be west,south,east,north in degrees"),
        (["--area", "1,2,0,3"], "area longitudes are 1.0..0.0, must be increasing"),
        (["--area", "1,2,3,4", "--map", "m.csv"], "area is 1,2,3,4, must not go with a map_file"),
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


def test_what_is_no_file_of_traces_is_said_before_spark_starts(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "simulator.traces.run.simulator_session", lambda _master: pytest.fail("it starts")
    )
    odd = tmp_path / "points.xls"
    odd.write_text("x")
    for path, message in (
        (odd, f"{odd} is no file of traces: its name must end in one of "),
        (write_csv(tmp_path / "a.csv", [(1, 2)], header="vehicle,when"), "no column for the time"),
    ):
        found = run(path, "--out", tmp_path / "out")
        assert found.exit_code == 1
        assert message in found.output


def test_a_missing_file_and_a_missing_map(tmp_path):
    found = run(tmp_path / "none.csv")
    assert found.exit_code == 1
    assert f"there is no file {tmp_path / 'none.csv'}" in found.output
    found = run(write_csv(tmp_path / "a.csv", []), "--map", tmp_path / "none.osm")
    assert found.exit_code == 1
    assert f"there is no file {tmp_path / 'none.osm'}" in found.output
