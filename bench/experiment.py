"""An experiment as data: its parameters, its sweep, the compared systems, the metrics and the plots.

A suite has everything that one kind of measurement shares: a model of its parameters, the experiments,
and the name of the code that measures a point (`bench.benchmark.Benchmark`), which is imported when it is
needed. `bench.runner` runs experiments, `bench.catalogue` lists all suites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field

from safe_region.scoring.formulas import Similarity
from simulator.parameters.declared import Parameters

Changes = Mapping[str, Any]
"""Values of parameters, by name."""

# -- parameters ----------------------------------------------------------------------------------

COUNT_MAX = 10_000_000


def count(default: int | None, meaning: str, least: int = 1, most: int = COUNT_MAX) -> Any:  # noqa: ANN401
    """Return a parameter that is a whole number, with its limits."""
    return Field(default, ge=least, le=most, description=meaning)


def share(default: float | None, meaning: str) -> Any:  # noqa: ANN401
    """Return a parameter that is a share of something."""
    return Field(default, ge=0.0, le=1.0, description=meaning)


DataName = Literal["places", "texts", "geonames", "osm", "synthetic", "messages", "uniform"]
DATA_MEANING = (
    "Names or texts of businesses of the United States, towns of the Americas, Malta's points of "
    "interest, a drawn city, or one whose objects have 5 to 13 keywords, by Zipf's law or all as "
    "frequent."
)


class BenchParameters(Parameters):
    """Parameters of every suite."""

    seed: int = Field(1, description="Seed of all random choices.")


class DataParameters(BenchParameters):
    """Parameters of the suites that draw objects from a data set."""

    data: DataName = Field("synthetic", description=DATA_MEANING)


class MessageParameters(BenchParameters):
    """Parameters of the suites whose objects have more keywords."""

    data: DataName = Field("messages", description=DATA_MEANING)


class BudgetParameters(BenchParameters):
    """Parameters of the suites in which a slow system runs at a smaller size."""

    budget_s: float = Field(
        600.0,
        ge=0.0,
        description="Time limit of one point; a slower system runs at a smaller size, which its row "
        "shows.",
    )


class TopKParameters(DataParameters):
    """Parameters of the suites with top-k subscriptions."""

    k_max: int = Field(10, ge=1, le=100, description="Maximum k; k is uniform from 1.")
    similarity: Literal["jaccard", "dice", "cosine"] = Field(
        "jaccard", description="Text similarity of all subscriptions."
    )

    @property
    def text_similarity(self) -> Similarity:
        """Return the similarity, as indexes represent it."""
        return Similarity[self.similarity.upper()]


class TrajectoryParameters(BenchParameters):
    """Parameters of the suites whose devices drive on trajectories."""

    trajectories: Literal["roads", "gps"] = Field(
        "roads", description="Trips through a generated city, or taxi traces."
    )


# -- sweeps -------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One value of a sweep.

    Parameters
    ----------
    changes
        Changes of the parameters.
    label
        Columns of the rows.
    variants
        The only variants that are measured here; those of the experiment by default.
    """

    changes: Changes
    label: Changes
    variants: tuple[str, ...] = ()


class Sweep(Protocol):
    """The parameters that an experiment varies, and their values."""

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401 - a model of parameters
        """Return the steps from these parameters."""

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the same sweep with other values of a parameter; None if it does not determine it."""


@dataclass(frozen=True, slots=True)
class Over:
    """Vary one parameter.

    Parameters
    ----------
    name, values
        The parameter and its values.
    follow
        Parameters that take the same value.
    """

    name: str
    values: Sequence[Any]
    follow: tuple[str, ...] = ()

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return a step for each value."""
        found = [base.changed(**dict.fromkeys((self.name, *self.follow), value)) for value in self.values]
        names = (self.name, *self.follow)
        return [
            Step({name: getattr(one, name) for name in names}, {self.name: getattr(one, self.name)})
            for one in found
        ]

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the same sweep with other values."""
        return replace(self, values=tuple(values)) if name == self.name else None


@dataclass(frozen=True, slots=True)
class Shares:
    """Vary sizes by shares of their values.

    Parameters
    ----------
    names
        Names of the parameters.
    shares
        Factors of the values.
    least
        Least value.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    least: int = 1

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return a step for each share."""
        found = [
            {name: max(self.least, round(getattr(base, name) * share)) for name in self.names}
            for share in self.shares
        ]
        return [Step(sizes, sizes) for sizes in found]

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return a sweep over several values; None for one value, the base of the shares."""
        return Over(name, values) if self.names == (name,) and len(values) > 1 else None


@dataclass(frozen=True, slots=True)
class Each:
    """Combine every step of a sweep with every step of another one."""

    first: Sweep
    second: Sweep

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return all pairs."""
        pairs = product(self.first.steps(base), self.second.steps(base))
        return [Step({**a.changes, **b.changes}, {**a.label, **b.label}) for a, b in pairs]

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the same sweep with other values."""
        first, second = self.first.replaced(name, values), self.second.replaced(name, values)
        if first is None and second is None:
            return None
        return replace(self, first=first or self.first, second=second or self.second)


@dataclass(frozen=True, slots=True)
class Steps:
    """Compute steps from the parameters with a function."""

    make: Callable[[Any], list[Step]]

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return the steps of the function."""
        return self.make(base)

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:  # noqa: ARG002
        """Return None: the function decides."""
        return None


ONCE = Steps(lambda _base: [Step({}, {})])
"""Sweep of an experiment that varies nothing."""

# -- pictures ------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """Lines over a varied column, of the rows that have it.

    Parameters
    ----------
    x, y
        Columns; the first y is drawn solid, others dashed and dotted.
    by
        A line for each value of this column.
    log
        "x" for a logarithmic x axis. The y axis is logarithmic if its values differ by much.
    """

    x: str
    y: tuple[str, ...]
    by: str = "variant"
    log: str = ""


class Bars(NamedTuple):
    """A group of bars for each row.

    Parameters
    ----------
    heights
        Columns, a bar each.
    names
        Columns that name a row.
    is_stacked
        Whether the bars of a row lie on top of each other, at a linear scale.
    is_flat
        Whether bars are horizontal, so that there is space for many names.
    """

    heights: tuple[str, ...]
    names: tuple[str, ...] = ("variant",)
    is_stacked: bool = False
    is_flat: bool = False


class Scatter(NamedTuple):
    """A point for each row, with its name.

    Parameters
    ----------
    x, y
        Columns.
    curve
        Pattern of the variants that are joined by a line.
    each
        A picture for each value of this column.
    """

    x: str
    y: str
    curve: str
    each: str = "data"


class Course(NamedTuple):
    """Samples over time in each row: a column of pairs of seconds and values."""

    samples: str
    what: str


Plot = Lines | Bars | Scatter | Course

# -- experiments ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure.

    Parameters
    ----------
    name
        Name, which follows the name of its suite and a slash.
    source
        Paper and figure; empty if it is ours.
    what
        One line.
    variants
        Compared variants; all of the benchmark by default.
    changes
        Changes of the suite's parameters.
    sweep
        The varied parameters.
    metrics
        Columns that are shown in addition to the suite's, with their units.
    plots
        Plots; those of the suite by default.
    reduced
        Parameters of a run of some minutes, in addition to the suite's.
    benchmark
        Code that measures it, if not the suite's.
    """

    name: str
    source: str
    what: str
    variants: tuple[str, ...] = ()
    changes: Changes = field(default_factory=dict)
    sweep: Sweep = ONCE
    metrics: Mapping[str, str] = field(default_factory=dict)
    plots: tuple[Plot, ...] = ()
    reduced: Changes = field(default_factory=dict)
    benchmark: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """Experiments that are measured in the same way.

    Parameters
    ----------
    name
        Name before the slash.
    what
        One line.
    benchmark
        `module:class` of a `bench.benchmark.Benchmark`.
    parameters
        Model of the parameters.
    metrics
        Columns that are shown, in this order, with their units.
    plots
        Plots of the experiments that have none of their own.
    reduced
        Parameters of a run of some minutes; several values are a series.
    experiments
        All experiments.
    about
        Description of the variants, and other notes.
    """

    name: str
    what: str
    benchmark: str
    parameters: type[BenchParameters]
    metrics: Mapping[str, str]
    plots: tuple[Plot, ...]
    reduced: Changes
    experiments: tuple[Experiment, ...]
    about: str = ""


class Named(NamedTuple):
    """An experiment with its suite."""

    suite: Suite
    experiment: Experiment

    @property
    def name(self) -> str:
        """Return the name as users write it."""
        return f"{self.suite.name}/{self.experiment.name}"
