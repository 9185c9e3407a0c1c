"""Run experiments: trial, size that the time allows, measurement, repetition, audit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple, get_origin

from bench.benchmark import Benchmark, P, Progress, Row, TooSlowError
from bench.errors import BenchError
from bench.experiment import BenchParameters, Experiment, Named, Suite, Sweep
from bench.results import Result

Settings = Mapping[str, Sequence[Any]]
"""Values of parameters by name: several are a series."""


class Point(NamedTuple):
    """One variant at one setting."""

    variant: str
    parameters: BenchParameters
    label: Row


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs experiments with the same settings.

    Parameters
    ----------
    progress
        Function that receives the progress.
    settings
        Values of parameters; a suite ignores those of parameters that it does not have.
    variants
        The only variants that are measured; all by default.
    is_reduced
        Whether to use sizes with which an experiment takes some minutes.
    repeat
        Number of measurements of each point; rows then have medians.
    """

    progress: Progress
    settings: Settings
    variants: Sequence[str] = ()
    is_reduced: bool = False
    repeat: int = 1

    def measurable(self, chosen: Sequence[Named]) -> list[Named]:
        """Check all settings before all measurements; leave out experiments without a point.

        Raises
        ------
        ParameterError
            If a value is outside its limits.
        BenchError
            If a variant is unknown, or no experiment compares it.
        """
        known = {name: None for one in chosen for name in benchmark_of(one).VARIANTS}
        for name in self.variants:
            if name not in known:
                raise BenchError(f"variant is {name!r}, must be one of {', '.join(known)}")
        found = []
        for one in chosen:
            points = self.plan(one)[1]
            for point in points:
                benchmark_of(one).check(point.variant, point.parameters)
            found += [one] if points else []
        if not found:
            compared = {name: None for one in chosen for name in one.experiment.variants}
            raise BenchError(f"variant is {self.variants[0]!r}, must be one of {', '.join(compared)}")
        return found

    def plan(self, named: Named) -> tuple[BenchParameters, list[Point]]:
        """Return the base parameters of all points, and the points.

        Raises
        ------
        ParameterError
            If a value is outside its limits.
        """
        known, experiment = benchmark_of(named).VARIANTS, named.experiment
        base, sweep, series = self._settled(named.suite, experiment)
        points = []
        for values in product(*series.values()):
            outer = base.changed(**dict(zip(series, values, strict=True)))
            label = {name: getattr(outer, name) for name in (*_shown(outer), *series)}
            for step in sweep.steps(outer):
                parameters = outer.changed(**step.changes)
                points += [
                    Point(name, parameters, {**label, **step.label})
                    for name in step.variants or experiment.variants or known
                    if not self.variants or name in self.variants
                ]
        return base, points

    def _settled(
        self, suite: Suite, experiment: Experiment
    ) -> tuple[BenchParameters, Sweep, dict[str, Sequence[Any]]]:
        """Return the parameters, the sweep, and the other parameters that have several values."""
        fields = suite.parameters.model_fields
        chosen = {**suite.reduced, **experiment.reduced} if self.is_reduced else {}
        chosen |= {name: values for name, values in self.settings.items() if name in fields}
        given: dict[str, Any] = dict(experiment.changes)
        sweep, series = experiment.sweep, dict[str, Sequence[Any]]()
        for name, value in chosen.items():
            values = value if isinstance(value, list | tuple) else [value]
            if get_origin(fields[name].annotation) is tuple:
                given[name] = tuple(values)
                continue
            given[name] = values[-1]
            other = sweep.replaced(name, values)
            if other is not None:
                sweep = other
            elif len(values) > 1:
                series[name] = values
        return suite.parameters(**given), sweep, series

    def run(self, named: Named) -> Result:
        """Run an experiment.

        Raises
        ------
        BenchError
            If data are missing, or a process has failed.
        """
        began_s = time.monotonic()
        base, points = self.plan(named)
        found = _empty(named, base)
        with benchmark_of(named)([point.parameters for point in points], self.progress) as benchmark:
            for number, point in enumerate(points):
                self.progress(found.experiment, number, len(points))
                common = {"variant": point.variant, **point.label}
                found.labels += [name for name in point.label if name not in found.labels]
                found.rows += [{**common, **row} for row in self._rows(benchmark, point)]
            self.progress(found.experiment, len(points), len(points))
        found.took_s = round(time.monotonic() - began_s, 1)
        return found

    def failed(self, named: Named, error: str) -> Result:
        """Return the result of an experiment that could not be run."""
        found = _empty(named, self.plan(named)[0])
        found.error = error
        return found

    def _rows(self, benchmark: Benchmark[Any], point: Point) -> list[Row]:
        reason = benchmark.why_not(point.variant)
        if reason is not None:
            return [{"skipped": reason, "lists_audited": 0, "mismatches": 0}]
        parameters = affordable(benchmark, point.variant, point.parameters)
        runs: list[list[Row]] = []
        while len(runs) < self.repeat:
            try:
                runs.append(benchmark.measure(point.variant, parameters))
            except TooSlowError:
                self.progress(f"{point.variant}: too slow", 1, 1)
                parameters = benchmark.smaller(point.variant, parameters) or parameters
        return runs[0] if len(runs) == 1 else [_median(rows) for rows in zip(*runs, strict=True)]


def _empty(named: Named, base: BenchParameters) -> Result:
    suite, experiment = named
    return Result(
        experiment=named.name,
        source=experiment.source,
        what=experiment.what,
        parameters=base.as_dict(),
        metrics={**suite.metrics, **experiment.metrics},
    )


_compiled: set[tuple[type[Benchmark[Any]], str]] = set()
"""Benchmarks and variants whose kernels have been compiled in this process."""


def affordable(benchmark: Benchmark[P], variant: str, parameters: P) -> P:
    """Return the parameters of a point, or those of a smaller one that the time allows."""
    is_first = (type(benchmark), variant) not in _compiled
    smaller = benchmark.smaller(variant, parameters)
    if not is_first and smaller is None:
        return parameters
    _compiled.add((type(benchmark), variant))
    estimate = benchmark.trial(variant, parameters)
    if is_first and estimate is not None:  # the first trial compiled kernels
        estimate = benchmark.trial(variant, parameters)
    if estimate is None:
        return parameters
    budget_s = getattr(parameters, "budget_s", float("inf"))
    while smaller is not None and estimate(parameters) > budget_s:
        parameters = smaller
        smaller = benchmark.smaller(variant, parameters)
    return parameters


def _median(rows: Sequence[Row]) -> Row:
    """Return the medians of measurements of one point, and the sums of their audits."""
    found: Row = {}
    for name, first in rows[0].items():
        values = [row.get(name) for row in rows]
        is_measured = isinstance(first, int | float) and not isinstance(first, bool)
        if name in {"lists_audited", "mismatches"}:
            found[name] = sum(value or 0 for value in values)
        elif is_measured and None not in values:
            found[name] = statistics.median(value for value in values if value is not None)
        else:
            found[name] = first
    return {**found, "repeated": len(rows)}


def _shown(parameters: BenchParameters) -> list[str]:
    """Return the parameters that every row has: those of the data."""
    return [one for one in ("data", "trajectories", "roads") if one in type(parameters).model_fields]


def benchmark_of(named: Named) -> type[Benchmark[Any]]:
    """Import the code that measures an experiment."""
    module, _, name = (named.experiment.benchmark or named.suite.benchmark).partition(":")
    found: type[Benchmark[Any]] = getattr(import_module(module), name)
    return found
