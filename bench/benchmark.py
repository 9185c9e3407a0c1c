"""What a suite's code is to the runner: it measures one variant at one point."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from bench.experiment import BenchParameters

P = TypeVar("P", bound=BenchParameters)
T = TypeVar("T")

Row = dict[str, Any]
"""Columns of a result; `lists_audited` and `mismatches` are the audit's."""
Progress = Callable[[str, int, int], None]
"""Is given a stage, how much of it is done, and how much there is."""
Estimate = Callable[[Any], float]
"""Returns the seconds that a point with other parameters would take."""


class TooSlowError(Exception):
    """A run takes longer than it may; the runner tries a smaller one."""


class Benchmark(Generic[P]):
    """Measures the points of one experiment.

    Parameters
    ----------
    points
        The parameters of all points that will be measured.
    progress
        Is told how far it is.
    """

    VARIANTS: ClassVar[Sequence[str]]
    """Everything that can be measured, by name."""

    def __init__(self, points: Sequence[P], progress: Progress) -> None:
        self.points = points
        self.progress = progress
        self.resources = ExitStack()
        """Closed when all points have been measured."""
        self._kept: dict[str, tuple[Hashable, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.resources.close()

    @classmethod
    def check(cls, variant: str, parameters: P) -> None:
        """See before anything is measured that a point can be.

        Raises
        ------
        BenchError
            If it cannot.
        """

    def why_not(self, variant: str) -> str | None:  # noqa: ARG002
        """Say why a variant cannot be measured on this machine; None if it can."""
        return None

    def trial(self, variant: str, parameters: P) -> Estimate | None:  # noqa: ARG002
        """Run a small point, which compiles kernels; return what it lets one expect of others.

        None if there is nothing to compile. The runner does it twice for the first point of a variant.
        """
        return None

    def smaller(self, variant: str, parameters: P) -> P | None:  # noqa: ARG002
        """Return a point of about half the size; None if this one is small enough for any time."""
        return None

    def measure(self, variant: str, parameters: P) -> list[Row]:
        """Measure a variant at a point; return a row, or several.

        Raises
        ------
        TooSlowError
            If it would take too long, and there is a smaller point.
        """
        raise NotImplementedError

    def whole(self, parameters: P, size: str) -> P:
        """Return the point with the largest size of those that differ in nothing else.

        Workloads are drawn for it: smaller points have the first rows of the same.
        """
        alike = [
            getattr(one, size)
            for one in self.points
            if one.changed(**{size: getattr(parameters, size)}) == parameters
        ]
        return parameters.changed(**{size: max([getattr(parameters, size), *alike])})

    def kept(self, what: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for this key, as long as no other key was asked for; else make it."""
        if what not in self._kept or self._kept[what][0] != key:
            self._kept.pop(what, None)  # there may be no memory for two
            self._kept[what] = (key, make())
        found: T = self._kept[what][1]
        return found


def silent(_stage: str, _done: int, _total: int) -> None:
    """Progress of a trial: none."""
