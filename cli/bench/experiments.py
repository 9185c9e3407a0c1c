"""`nearcast bench list` and `nearcast bench run`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from cli.failures import refused, reported
from cli.progress import bars

if TYPE_CHECKING:
    from bench.experiment import BenchParameters, Named
    from bench.results import Result
    from bench.runner import Runner

_WIDTH = 100
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="list", epilog="Example: nearcast bench list lamps/table-3")
@click.argument("names", metavar="[NAME]...", nargs=-1)
def list_(names: Sequence[str]) -> None:
    """List the experiments, or describe some of them: parameters, variants, metrics.

    NAME is an experiment, or a suite for all of its experiments.
    """
    from bench import catalogue  # noqa: PLC0415 - imports numpy and pydantic
    from bench.errors import BenchError  # noqa: PLC0415

    with refused(BenchError):
        chosen = catalogue.found(names) if names else catalogue.experiments()
    if names:
        _describe(chosen)
        return
    name_width = max(len(one.name) for one in chosen)
    source_width = max(len(one.experiment.source) for one in chosen)
    for one in chosen:
        source = one.experiment.source.ljust(source_width)
        click.echo(f"{one.name.ljust(name_width)}  {source}  {one.experiment.what}")


@click.command(
    epilog="Example: nearcast bench run lamps/table-3 lamps/figure-11 --set data=places "
    "--set subscriptions=1000000"
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="All experiments.")
@click.option("--reduced", is_flag=True, help="Use reduced sizes: an experiment takes some minutes.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PARAMETER=VALUE",
    help="Value of a parameter; several values, separated by commas, form a series. `nearcast bench "
    "list NAME` shows parameters and their limits. Repeat for more.",
)
@click.option("--variant", "variants", multiple=True, help="Measure only this variant; repeat for more.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Number of measurements of each point; rows have the medians.",
)
@click.option("--json", "json_path", type=_FILE, help="File for results, machine, versions, commit.")
@click.option("--plot", type=_FILE, help="Picture of the results, PNG.")
def run(
    names: Sequence[str],
    is_all: bool,  # noqa: FBT001
    reduced: bool,  # noqa: FBT001
    settings: Sequence[str],
    variants: Sequence[str],
    repeat: int,
    **files: Path | None,
) -> None:
    """Run experiments, audited by sample against the definition.

    NAME is an experiment, or a suite for all of its experiments. Real data is read from the folder that
    the variable NEARCAST_DATA names; the data set synthetic needs none. The status is 1 if a result was
    wrong, memory rose, or an experiment could not run.
    """
    from bench import catalogue  # noqa: PLC0415 - imports numpy and pydantic
    from bench.errors import BenchError  # noqa: PLC0415
    from bench.runner import Runner  # noqa: PLC0415
    from simulator.parameters.declared import ParameterError  # noqa: PLC0415

    if not names and not is_all:
        raise click.UsageError(
            "no experiment is given: give names, or --all; `nearcast bench list` shows the names"
        )
    results = _Results(files["json_path"], files["plot"])
    with reported(BenchError), refused(ParameterError), bars() as progress:
        chosen = catalogue.experiments() if is_all else catalogue.found(names)
        values = _values(settings, chosen)
        runner = Runner(progress, values, tuple(variants), is_reduced=reduced, repeat=repeat)
        chosen = runner.measurable(chosen)
        for one in chosen:
            results.add(one, _result(runner, one, is_only=len(chosen) == 1))
    results.finish()


class _Results:
    """Results of a run. JSON is written after each experiment, so that an early end loses little."""

    def __init__(self, json_path: Path | None, plot: Path | None) -> None:
        self._json_path, self._plot = json_path, plot
        self._done: list[tuple[Named, Result]] = []

    def add(self, experiment: Named, result: Result) -> None:
        """Print a result, and write it."""
        self._done.append((experiment, result))
        click.echo(f"{result.experiment}: {result.what}")
        for line in [result.error] if result.error else result.table():
            click.echo(line)
        if self._json_path is not None:
            from bench import results  # noqa: PLC0415

            results.write(self._json_path, [one for _, one in self._done], sys.argv[1:])

    def finish(self) -> None:
        """Draw the results, and exit with the status."""
        found = [one for _, one in self._done]
        if self._plot is not None:
            from bench import pictures  # noqa: PLC0415 - an extra

            plots = [(result, one.experiment.plots or one.suite.plots) for one, result in self._done]
            pictures.draw(plots, self._plot)
        for path in filter(None, (self._json_path, self._plot)):
            click.echo(str(path))
        failures = [f"{one.experiment}: {message}" for one in found for message in one.failures]
        for failure in failures:
            click.echo(failure, err=True)
        lists, mismatches = sum(one.lists for one in found), sum(one.mismatches for one in found)
        click.echo(f"audit: {lists} lists, {mismatches} mismatches")
        raise SystemExit(1 if mismatches or failures else 0)


def _result(runner: Runner, one: Named, *, is_only: bool) -> Result:
    """Run an experiment. If it fails and is not the only one, the others still run."""
    from bench.errors import BenchError  # noqa: PLC0415

    try:
        return runner.run(one)
    except Exception as error:
        if is_only:
            raise
        if not isinstance(error, BenchError):
            traceback.print_exc()  # a defect of the benchmark
        return runner.failed(one, str(error))


def _values(settings: Sequence[str], chosen: Sequence[Named]) -> dict[str, tuple[str | None, ...]]:
    """Parse settings.

    Raises
    ------
    BenchError
        If a setting has no value, or does not name a parameter of an experiment.
    """
    from bench.errors import BenchError  # noqa: PLC0415

    known = {name for one in chosen for name in one.suite.parameters.model_fields}
    found: dict[str, tuple[str | None, ...]] = {}
    for setting in settings:
        name, is_there, text = setting.partition("=")
        if not is_there or name not in known:
            names = ", ".join(sorted(known))
            raise BenchError(f"--set is {setting!r}, must be PARAMETER=VALUE with one of {names}")
        found[name] = tuple(None if one == "none" else one for one in text.split(","))
    return found


# -- descriptions --------------------------------------------------------------------------------


def _describe(chosen: Sequence[Named]) -> None:
    """Print experiments, and the common description of their suites."""
    from bench.runner import benchmark_of  # noqa: PLC0415

    for suite in dict.fromkeys(one.suite.name for one in chosen):
        mine = [one for one in chosen if one.suite.name == suite]
        click.echo(f"{suite}: {mine[0].suite.what}")
        for line in wrap(mine[0].suite.about, _WIDTH):
            click.echo(line)
        for one in mine:
            experiment = one.experiment
            variants = experiment.variants or benchmark_of(one).VARIANTS
            click.echo(f"\n{one.name}  {experiment.source}\n  {experiment.what}")
            click.echo(f"  variants: {', '.join(variants)}")
            if experiment.metrics:
                click.echo(f"  metrics: {_units(experiment.metrics)}")
        if mine[0].suite.metrics:
            click.echo(f"\nmetrics of all: {_units(mine[0].suite.metrics)}")
        click.echo("\nparameters (--set), reduced values in brackets:")
        for line in _parameters(mine[0].suite.parameters, mine[0].suite.reduced):
            click.echo(line)


def _units(metrics: Any) -> str:  # noqa: ANN401 - a mapping
    return ", ".join(f"{name} ({unit})" for name, unit in metrics.items())


def _parameters(model: type[BenchParameters], reduced: Any) -> list[str]:  # noqa: ANN401
    """Return a line for each parameter: name, default, limits, meaning."""
    from simulator.parameters.declared import bounds  # noqa: PLC0415

    lines = []
    for name, field in model.model_fields.items():
        low, high = bounds(field)
        limits = "" if low is None and high is None else f", {_number(low)}..{_number(high)}"
        less = f" [{reduced[name]}]" if name in reduced else ""
        lines.append(f"  {name}={field.default}{less}{limits}: {field.description}")
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.15g}"
