"""The benchmark of Lamps: every variant runs, is audited, and would be caught if it were wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from bench import datasets
from bench.engines import top_k_of
from bench.lamps.experiments import EXPERIMENTS, variants
from bench.lamps.run import Lamps, LampsParameters
from bench.trajectories import STILL_M, Trajectories
from cli.app import app

SMALL = LampsParameters(subscriptions=300, objects=400, ticks=4, audited=120, warm_up_s=0)


@pytest.fixture(scope="module")
def data():
    return datasets.synthetic(2_000)


def quiet(_stage, _done, _total):
    """Nobody is told."""


def walking(seconds):
    """A few walks of a metre and a half a second."""
    angles = np.linspace(0.0, 6.0, 12)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return 30.0 * directions[:, None, :] * np.arange(seconds + 1)[None, :, None]


POLYGONS = replace(SMALL, subscriptions=60, audited=60)
"""Local safe regions take milliseconds each."""


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("naive", SMALL),
        ("lamps-without-asr", POLYGONS),
        ("lamps-without-sq-tree", SMALL),
        ("lamps-without-iqf", SMALL),
        ("lamps", SMALL),
    ],
)
def test_every_variant_shows_what_the_oracle_says(data, name, parameters):
    lamps = Lamps(variants(data)[name], data, walking(parameters.ticks), parameters)
    lamps.build(quiet)
    lamps.run(quiet, 60.0)
    assert (lamps.audit.lists, lamps.audit.mismatches) == (parameters.audited, 0)
    assert sum(lamps.ticks.moved_count) > 0
    assert sum(lamps.ticks.generated_count) > 0
    assert lamps.memory_bytes() > 0


@pytest.mark.parametrize("name", ["anchored-0", "anchored-5", "anchored-cost", "anchored-cost-ahead"])
def test_anchored_variants_are_quieter_and_as_exact(data, name):
    parameters = replace(SMALL, warm_up_s=10)
    walks = walking(parameters.warm_up_s + parameters.ticks)
    counts = {}
    for one in ("lamps", name):
        lamps = Lamps(variants(data)[one], data, walks, parameters)
        lamps.build(quiet)
        lamps.warm_up(quiet)
        lamps.run(quiet, 60.0)
        assert (lamps.audit.lists, lamps.audit.mismatches) == (parameters.audited, 0)
        ticks = lamps.ticks
        counts[one] = sum(ticks.generated_count) + sum(ticks.expired_count) + sum(ticks.moved_count)
    assert counts[name] < counts["lamps"]


def test_regions_are_of_all_ages_when_it_is_measured(data):
    parameters = replace(SMALL, warm_up_s=60)
    lamps = Lamps(variants(data)["lamps"], data, walking(70), parameters)
    lamps.build(quiet)
    subscriptions = top_k_of(lamps.engine).subscriptions
    made_ms = [set(subscriptions.rows["anchored_ms"][subscriptions.used()].tolist())]
    lamps.warm_up(quiet)
    made_ms.append(set(subscriptions.rows["anchored_ms"][subscriptions.used()].tolist()))
    assert made_ms[0] == {0}
    assert made_ms[1] <= set(range(0, 61_000, 5_000))
    assert len(made_ms[1]) > 6
    assert lamps.warm_up_s > 0.0
    lamps.run(quiet, 60.0)
    assert lamps.audit.mismatches == 0


def test_devices_without_regions_have_nothing_to_wait_for(data):
    lamps = Lamps(variants(data)["naive"], data, walking(70), replace(SMALL, warm_up_s=60))
    lamps.build(quiet)
    lamps.warm_up(quiet)
    assert (lamps.warm_up_s, lamps.ticks.moved_count) == (0.0, [])
    lamps.run(quiet, 60.0)
    assert (lamps.audit.lists, lamps.audit.mismatches) == (SMALL.audited, 0)


def test_the_audit_notices_a_wrong_list(data):
    lamps = Lamps(variants(data)["lamps"], data, walking(SMALL.ticks), SMALL)
    lamps.build(quiet)
    # An object that the audit believes in and the engine never saw.
    stranger = data.objects(1, 10_000_000, np.random.default_rng(1))
    for row in range(200):
        words = lamps.audit._words[row]
        batch = type(stranger)(
            stranger.ids + row,
            lamps._subscriptions.x_m[row : row + 1],
            lamps._subscriptions.y_m[row : row + 1],
            datasets.KeywordLists.of([words]),
        )
        lamps.audit.publish(batch)
    lamps.run(quiet, 60.0)
    assert lamps.audit.mismatches > 20


def test_every_experiment_names_variants_that_exist(data):
    known = variants(data)
    for settings in EXPERIMENTS.values():
        assert all(setting.variant in known for setting in settings(SMALL))


def test_journeys_begin_where_devices_are_and_turn_by_right_angles():
    chance = np.random.default_rng(3)
    start = chance.uniform(-10.0, 10.0, (2, 50))
    trajectories = Trajectories(walking(9), start[0], start[1], chance)
    for second, far in ((0, 0.0), (1, 30.0), (9, 270.0), (10, 240.0), (18, 0.0)):
        x_m, y_m = trajectories.at(second)
        assert np.hypot(x_m - start[0], y_m - start[1]) == pytest.approx(far)
    assert (Trajectories(STILL_M, start[0], start[1], chance).at(5)[0] == start[0]).all()


def test_objects_are_drawn_without_repetition_first(data):
    objects = data.objects(3_000, 1, np.random.default_rng(2))
    assert len(np.unique(np.stack([objects.x_m, objects.y_m]), axis=1).T) == 3_000
    assert set(np.round(objects.x_m[:2_000], 6)) == set(np.round(data.x_m, 6))
    assert objects.ids.tolist() == list(range(1, 3_001))


def test_the_command_writes_rows_and_a_picture(tmp_path):
    out, picture = tmp_path / "rows.json", tmp_path / "rows.png"
    arguments = ["bench", "lamps", "--subscriptions=200", "--objects=300", "--ticks=3"]
    arguments += ["--variant=lamps", "--variant=lamps-without-sq-tree", "--experiment=table-3"]
    arguments += ["--experiment=figure-9", "--experiment=figure-11", "--experiment=figure-12"]
    result = CliRunner().invoke(app, [*arguments, f"--json={out}", f"--plot={picture}"])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert set(found) == {"bench", "parameters", "environment", "rows"}
    assert found["bench"] == "lamps"
    assert all({"variant", "mismatches"} <= set(row) for row in found["rows"])
    assert {row["variant"] for row in found["rows"]} >= {"lamps", "lamps-without-sq-tree"}
    for row in found["rows"]:
        if row["experiment"] == "table-3":
            assert row["warm_up_s"] == LampsParameters().warm_up_s == 180
        if row["experiment"] == "figure-11":
            assert row["objects_seen"] == row["objects"] == 300
            assert 0.0 < row["error"] < 1.0
    assert picture.stat().st_size > 10_000
    assert result.output.splitlines()[-1].endswith("0 mismatches")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--experiment=table-9"], "experiment is 'table-9', must be one of anchored, figure-10"),
        (["--variant=best"], "variant is 'best', must be one of naive, lamps-without-asr"),
        (["--data=places"], "set NEARCAST_DATA to the folder that holds text/places_simplegeo_us.csv.gz"),
        (["--data=osm"], "set NEARCAST_DATA"),
        (["--trajectories=gps"], "set NEARCAST_DATA"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, arguments, said):
    command = [sys.executable, "-m", "cli", "bench", "lamps", *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={"NEARCAST_DATA": str(tmp_path), "PATH": ""},
        check=False,
    )
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
