"""An experiment as data: its parameters, what is varied, by which systems, what is measured and drawn.

A suite is what one kind of measurement has: a model of its parameters, the experiments, and the name of
the code that measures a point (`bench.benchmark.Benchmark`), which is imported when it is needed.
`bench.runner` runs experiments, `bench.catalogue` knows all suites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field

from safe_region.scoring import Similarity
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
    """What every suite has."""

    seed: int = Field(1, description="Of everything that is drawn.")


class DataParameters(BenchParameters):
    """What suites have that draw objects from a data set."""

    data: DataName = Field("synthetic", description=DATA_MEANING)


class MessageParameters(BenchParameters):
    """The same, for suites whose objects have more keywords."""

    data: DataName = Field("messages", description=DATA_MEANING)


class BudgetParameters(BenchParameters):
    """What suites have in which a slow system runs at a smaller size."""

    budget_s: float = Field(
        600.0,
        ge=0.0,
        description="Time for one point; a system that is slower runs at a smaller size, and its row "
        "says so.",
    )


class TopKParameters(DataParameters):
    """What suites have whose subscriptions are top-k."""

    k_max: int = Field(10, ge=1, le=100, description="k is uniform from 1 to this.")
    similarity: Literal["jaccard", "dice", "cosine"] = Field(
        "jaccard", description="Text similarity of all subscriptions."
    )

    @property
    def text_similarity(self) -> Similarity:
        """The same, as indexes know it."""
        return Similarity[self.similarity.upper()]


class TrajectoryParameters(BenchParameters):
    """What suites have whose devices drive on trajectories."""

    trajectories: Literal["roads", "gps"] = Field(
        "roads", description="Drives through a generated city, or taxi traces."
    )


# -- what is varied ------------------------------------------------------------------------------


class Step(NamedTuple):
    """One value of what an experiment varies.

    Parameters
    ----------
    changes
        Of the parameters.
    label
        Columns of the rows.
    variants
        The only ones that are measured here; those of the experiment by default.
    """

    changes: Changes
    label: Changes
    variants: tuple[str, ...] = ()


class Sweep(Protocol):
    """What an experiment varies."""

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401 - a model of parameters
        """Return the steps from these parameters."""

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the same with other values of a parameter; None if it does not decide about it."""


@dataclass(frozen=True, slots=True)
class Over:
    """A parameter takes some values.

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
        """Return a step a value."""
        found = [base.changed(**dict.fromkeys((self.name, *self.follow), value)) for value in self.values]
        names = (self.name, *self.follow)
        return [
            Step({name: getattr(one, name) for name in names}, {self.name: getattr(one, self.name)})
            for one in found
        ]

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the same with other values."""
        return replace(self, values=tuple(values)) if name == self.name else None


@dataclass(frozen=True, slots=True)
class Shares:
    """Sizes take shares of what they are.

    Parameters
    ----------
    names
        Parameters.
    shares
        What they are multiplied by.
    least
        What they are at least.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    least: int = 1

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return a step a share."""
        found = [
            {name: max(self.least, round(getattr(base, name) * share)) for name in self.names}
            for share in self.shares
        ]
        return [Step(sizes, sizes) for sizes in found]

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the values, if there are several: a single one is the whole."""
        return Over(name, values) if self.names == (name,) and len(values) > 1 else None


@dataclass(frozen=True, slots=True)
class Each:
    """Every step of a sweep with every step of another one."""

    first: Sweep
    second: Sweep

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return all pairs."""
        pairs = product(self.first.steps(base), self.second.steps(base))
        return [Step({**a.changes, **b.changes}, {**a.label, **b.label}) for a, b in pairs]

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:
        """Return the same with other values."""
        first, second = self.first.replaced(name, values), self.second.replaced(name, values)
        if first is None and second is None:
            return None
        return replace(self, first=first or self.first, second=second or self.second)


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps that a function makes of the parameters."""

    make: Callable[[Any], list[Step]]

    def steps(self, base: Any) -> list[Step]:  # noqa: ANN401
        """Return them."""
        return self.make(base)

    def replaced(self, name: str, values: Sequence[Any]) -> Sweep | None:  # noqa: ARG002
        """Return None: the function decides."""
        return None


ONCE = Steps(lambda _base: [Step({}, {})])
"""Nothing is varied."""

# -- pictures ------------------------------------------------------------------------------------


class Lines(NamedTuple):
    """Lines over what is varied, of the rows that have it.

    Parameters
    ----------
    x, y
        Columns; the first y is drawn solid, others dashed and dotted.
    by
        A line for each value of this column.
    log
        "x" if that axis is logarithmic. The other one is if values differ by much.
    """

    x: str
    y: tuple[str, ...]
    by: str = "variant"
    log: str = ""


class Bars(NamedTuple):
    """A group of bars a row.

    Parameters
    ----------
    heights
        Columns, a bar each.
    names
        Columns that name a row.
    is_stacked
        Whether the bars of a row lie on top of each other, to a linear scale.
    is_flat
        Whether they lie, so that there is space for many names.
    """

    heights: tuple[str, ...]
    names: tuple[str, ...] = ("variant",)
    is_stacked: bool = False
    is_flat: bool = False


class Scatter(NamedTuple):
    """A point a row, with its name.

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
    """What was read from time to time in each row: a column of pairs of seconds and values."""

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
        Behind the name of its suite and a slash.
    source
        Paper and figure; empty if it is ours.
    what
        One line.
    variants
        What is compared; all of the benchmark by default.
    changes
        Of the suite's parameters.
    sweep
        What is varied.
    metrics
        Columns that are shown besides the suite's, with their units.
    plots
        What is drawn; what the suite has by default.
    reduced
        Parameters of a run of some minutes, besides the suite's.
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
        Before the slash.
    what
        One line.
    benchmark
        `module:class` of a `bench.benchmark.Benchmark`.
    parameters
        Their model.
    metrics
        Columns that are shown, in this order, with their units.
    plots
        What is drawn of experiments that do not say.
    reduced
        Parameters of a run of some minutes; several values are a series.
    experiments
        All of them.
    about
        What its variants are, and what else has to be known.
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
        """As users write it."""
        return f"{self.suite.name}/{self.experiment.name}"
