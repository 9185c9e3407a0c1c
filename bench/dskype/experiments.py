"""The experiments of `bench dskype`: Figures 21 to 26 and Table 5 of skype.txt, as points to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from bench.skype.workload import SkypeParameters
from streaming.distribution import MECHANISMS
from streaming.distribution.keywords import HYBRIDS

PROCESS = "process"
VARIANTS = (PROCESS, *MECHANISMS)
WARM = 2
"""Batches of messages that are not measured."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Size and shape of a run, beside what a workload has.

    Parameters
    ----------
    partitions
        Of the job.
    batch
        Messages of a batch.
    first_level
        Of the hybrids: parts of the first division.
    """

    partitions: int
    batch: int
    first_level: int = 0


class Setting(NamedTuple):
    """One point of an experiment."""

    variant: str
    label: dict[str, object]
    parameters: SkypeParameters
    shape: Shape


_SWEPT = ("hashing", "location", "prefix")
"""As the paper has them in Figures 22 to 24: keyword, which is slower than prefix, is left out."""


def _each(parameters: SkypeParameters, shape: Shape) -> list[Setting]:
    return [Setting(name, {}, parameters, shape) for name in VARIANTS]


def _sweep(
    parameters: SkypeParameters, shape: Shape, field: str, values: Sequence[object]
) -> list[Setting]:
    return [
        Setting(
            name,
            {"x": field, "y": "messages_per_s", field: value},
            replace(parameters, **cast("Any", {field: value})),
            shape,
        )
        for value in values
        for name in _SWEPT
    ]


def _figure_22(parameters: SkypeParameters, shape: Shape) -> list[Setting]:
    return [
        Setting(
            name,
            {"x": "partitions", "y": "messages_per_s", "partitions": count},
            parameters,
            replace(shape, partitions=count),
        )
        for count in (2, 4, 8, 16, 32)
        for name in _SWEPT
    ]


def _figure_25(parameters: SkypeParameters, shape: Shape) -> list[Setting]:
    """Hybrids, from all parts in the second division to all in the first; and what they lie between."""
    count = shape.partitions
    firsts = [one for one in range(1, count + 1) if count % one == 0]
    shapes = [(name, replace(shape, first_level=one)) for one in firsts for name in HYBRIDS]
    ends = [(count, "location", shape), (1, "prefix", shape)]
    alike = [(one.first_level, name, one) for name, one in shapes]
    return [
        Setting(
            name,
            {
                "x": "levels",
                "y": "messages_per_s",
                "levels": f"{first} x {count // first}",
            },
            parameters,
            one,
        )
        for first, name, one in (*alike, *ends)
    ]


EXPERIMENTS: dict[str, Callable[[SkypeParameters, Shape], list[Setting]]] = {
    "figure-21": _each,
    "figure-22": _figure_22,
    "figure-23": lambda base, shape: _sweep(base, shape, "k", (10, 20, 30, 40, 50)),
    "figure-24": lambda base, shape: _sweep(
        base, shape, "subscriptions", [base.subscriptions * times for times in (1, 2, 3, 4)]
    ),
    "figure-25": _figure_25,
}
"""By name. `figure-21` is Table 5 too, `figure-25` is Figure 26 too."""
