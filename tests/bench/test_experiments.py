"""What experiments are as data, and how the runner runs them, whatever they measure."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner
from pydantic import Field

from bench import catalogue, pictures, runner
from bench.benchmark import Benchmark, TooSlowError
from bench.experiment import (
    BudgetParameters,
    Each,
    Experiment,
    Lines,
    Named,
    Over,
    Shares,
    Step,
    Steps,
    Suite,
)
from bench.results import Result, write
from bench.runner import Runner, benchmark_of
from cli.app import app
from cli.bench.experiments import _values, run
from feeds.parameters import ParameterError

ROOT = Path(__file__).resolve().parents[2]


class ToyParameters(BudgetParameters):
    """Of the benchmark below."""

    size: int = Field(80, ge=1, le=1_000, description="How much.")
    speed: int = Field(1, ge=1, description="How fast.")
    names: tuple[str, ...] = Field((), description="Some names.")


class Toy(Benchmark[ToyParameters]):
    """Says what it is called with."""

    VARIANTS = ("fast", "slow", "absent")
    called: ClassVar = []

    def why_not(self, variant):
        return "it does not exist" if variant == "absent" else None

    def trial(self, variant, parameters):
        assert parameters.size
        Toy.called.append(("trial", variant))
        return lambda other: other.size / 10.0

    def smaller(self, variant, parameters):
        assert variant
        return parameters.changed(size=parameters.size // 2) if parameters.size > 10 else None

    def measure(self, variant, parameters):
        if variant == "slow" and parameters.size > 30:
            raise TooSlowError
        Toy.called.append(("measure", variant, parameters.size))
        took = len(Toy.called)
        return [{"took": took, "size": parameters.size, "lists_audited": 1, "mismatches": 0}]


def suite(*experiments, reduced=None):
    return Suite(
        "toy",
        "a toy",
        f"{__name__}:Toy",
        ToyParameters,
        {"took": "calls"},
        (Lines("size", ("took",)),),
        reduced or {},
        experiments,
    )


def planned(experiment, reduced=None, **options):
    settings = options.pop("settings", {})
    one = Runner(lambda *_: None, settings, **options)
    points = one.plan(Named(suite(experiment, reduced=reduced), experiment))[1]
    return [(point.variant, point.parameters.size, point.parameters.speed) for point in points]


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(Toy, "called", [])
    monkeypatch.setattr(runner, "_compiled", set())

    def run_toy(experiment, settings=None, **options):
        one = Runner(lambda *_: None, settings or {}, **options)
        return one.run(Named(suite(experiment), experiment))

    return run_toy


def test_a_sweep_takes_values_and_others_follow():
    swept = Experiment("one", "", "", ("fast",), sweep=Over("size", (2, 4), ("speed",)))
    assert planned(swept) == [("fast", 2, 2), ("fast", 4, 4)]
    assert planned(swept, settings={"size": ["7"]}) == [("fast", 7, 7)]
    assert planned(swept, settings={"size": ["7", "9"]}) == [("fast", 7, 7), ("fast", 9, 9)]


def test_shares_apply_to_set_values():
    swept = Experiment("one", "", "", ("fast",), sweep=Shares(("size",), (0.25, 1.0)))
    assert planned(swept) == [("fast", 20, 1), ("fast", 80, 1)]
    assert planned(swept, settings={"size": ["40"]}) == [("fast", 10, 1), ("fast", 40, 1)]
    assert planned(swept, settings={"size": ["7", "9"]}) == [("fast", 7, 1), ("fast", 9, 1)]


def test_sweeps_are_combined_and_several_values_are_a_series():
    swept = Experiment("one", "", "", ("fast",), sweep=Each(Over("size", (2, 4)), Over("speed", (1, 2))))
    assert planned(swept) == [("fast", 2, 1), ("fast", 2, 2), ("fast", 4, 1), ("fast", 4, 2)]
    plain = Experiment("one", "", "", ("fast", "slow"))
    assert planned(plain, settings={"speed": ["3", "5"]}) == [
        *(("fast", 80, 3), ("slow", 80, 3), ("fast", 80, 5), ("slow", 80, 5)),
    ]


def test_a_step_may_name_its_variants():
    steps = Steps(lambda base: [Step({"size": base.size + 1}, {}, ("slow",)), Step({}, {})])
    found = planned(Experiment("one", "", "", ("fast",), sweep=steps))
    assert found == [("slow", 81, 1), ("fast", 80, 1)]


def test_set_values_override_reduced_ones():
    one = Experiment("one", "", "", ("fast",), {"speed": 9}, reduced={"size": 3})
    assert planned(one, reduced={"size": 5, "speed": 2}) == [("fast", 80, 9)]
    assert planned(one, reduced={"size": 5, "speed": 2}, is_reduced=True) == [("fast", 3, 2)]
    assert planned(one, settings={"size": ["4"]}, is_reduced=True) == [("fast", 4, 9)]
    series = Experiment("one", "", "", ("fast",), sweep=Over("size", (8,)))
    assert planned(series, reduced={"size": (1, 2)}, is_reduced=True) == [("fast", 1, 1), ("fast", 2, 1)]


def test_values_are_checked_by_the_model():
    one = Experiment("one", "", "", sweep=Over("size", (2,)))
    with pytest.raises(ParameterError, match=r"size is 2000, must be within 1\.\.1000"):
        planned(one, settings={"size": ["2000"]})
    base = Runner(lambda *_: None, {"names": ["a", "b"]}).plan(Named(suite(one), one))[0]
    assert base.names == ("a", "b")


def test_the_first_trial_compiles_and_sizes_are_halved_until_they_are_affordable(toy):
    found = toy(Experiment("one", "", "", ("fast",)), {"budget_s": [2.5], "speed": ["1", "2"]})
    assert [row["size"] for row in found.rows] == [20, 20]
    trials = ("trial", "fast")
    assert Toy.called == [trials, trials, ("measure", "fast", 20), trials, ("measure", "fast", 20)]


def test_a_slow_experiment_is_tried_smaller_and_one_without_data_is_skipped(toy):
    found = toy(Experiment("one", "", "", ("slow", "absent")))
    assert [(row["variant"], row.get("size")) for row in found.rows] == [("slow", 20), ("absent", None)]
    assert found.rows[1]["skipped"] == "it does not exist"
    assert (found.lists, found.mismatches, found.failures) == (1, 0, [])


def test_a_repeated_point_has_medians_and_all_audits(toy):
    (row,) = toy(Experiment("one", "", "", ("fast",)), repeat=3).rows
    assert (row["took"], row["repeated"], row["lists_audited"]) == (4, 3, 3)


def test_a_variant_that_no_experiment_compares_is_named():
    one = Experiment("one", "", "", ("fast",))
    named = [Named(suite(one), one)]
    for wrong in ("best", "slow"):
        with pytest.raises(Exception, match=f"variant is '{wrong}', must be one of fast"):
            Runner(lambda *_: None, {}, (wrong,)).measurable(named)


def test_results_can_be_read_and_drawn(tmp_path):
    rows = [
        {"variant": "fast", "data": "city", "size": 1, "took": 2, "lists_audited": 1, "mismatches": 1},
        {"variant": "fast", "data": "town", "size": 1, "took": 4, "lists_audited": 1, "mismatches": 0},
    ]
    rows[0]["failure"] = "it rose"
    given = {"seed": 1, "size": 3}
    result = Result("toy/one", "Toys, Figure 1", "a toy", given, {"took": "s"}, ["size"], rows)
    write(tmp_path / "r.json", [result], ["bench", "run"])
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["results"][0]["audit"] == {"lists": 2, "mismatches": 1}
    assert found["results"][0]["seed"] == 1
    assert found["machine"]["cores"] > 0
    assert found["packages"]["numpy"]
    assert result.failures == ["it rose"]
    assert result.table()[0].split() == ["variant", "size", "took", "lists_audited", "mismatches"]
    pictures.draw([(result, (Lines("size", ("took",)),))], tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 10_000


# -- the real ones -------------------------------------------------------------------------------


@pytest.mark.parametrize("named", catalogue.experiments(), ids=lambda named: named.name)
def test_an_experiment_can_be_planned(named):
    known = set(benchmark_of(named).VARIANTS)
    for is_reduced in (False, True):
        base, points = Runner(lambda *_: None, {}, is_reduced=is_reduced).plan(named)
        assert {point.variant for point in points} <= known
        assert points
        for plot in named.experiment.plots or named.suite.plots:
            if isinstance(plot, Lines) and plot.x in type(base).model_fields:
                assert any(plot.x in point.label for point in points) or plot.x in named.suite.metrics
    assert {**named.suite.metrics, **named.experiment.metrics}
    assert all(field.description for field in named.suite.parameters.model_fields.values())


def test_names_are_different_and_a_suite_stands_for_its_experiments():
    names = [one.name for one in catalogue.experiments()]
    assert len(set(names)) == len(names)
    assert [one.name for one in catalogue.found(["lamps"])] == [
        name for name in names if name.startswith("lamps/")
    ]


def test_the_list_and_a_description():
    listed = CliRunner().invoke(app, ["bench", "list"])
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == [
        one.name for one in catalogue.experiments()
    ]
    sent = CliRunner().invoke(app, ["bench", "list", "lamps/table-3"]).output
    for text in (
        "variants: naive, lamps-without-asr",
        "k_max=10, 1 to 100: Maximum k;",
        "update_ms_median (ms per tick)",
    ):
        assert text in sent


# -- what the documentation says ------------------------------------------------------------------


def documented():
    """Every `nearcast bench run ...` of the pages, inline or in a block, as arguments."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text()
        blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
        lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        spans = re.findall(
            r"`(nearcast bench\s+run [^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        )
        for command in (*lines, *spans):
            if command.startswith("nearcast bench") and "..." not in command and " NAME" not in command:
                words = shlex.split(command, comments=True)
                if words[2] == "run":
                    yield pytest.param(words[3:], id=" ".join(words[3:]))


@pytest.mark.parametrize("arguments", list(documented()))
def test_commands_of_the_documentation_can_be_planned(arguments):
    given = run.make_context("run", list(arguments)).params
    chosen = catalogue.experiments() if given["is_all"] else catalogue.found(given["names"])
    one = Runner(lambda *_: None, _values(given["settings"], chosen), given["variants"])
    assert one.measurable(chosen)
