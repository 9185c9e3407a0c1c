"""Interface between the runner and the code of a suite, which measures one variant at one point."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from bench.experiment import BenchParameters

P = TypeVar("P", bound=BenchParameters)
T = TypeVar("T")

Row = dict[str, Any]
"""Columns of a result; `lists_audited` and `mismatches` are those of the audit."""
Progress = Callable[[str, int, int], None]
"""Receives a stage, the completed part of it, and its total."""
Estimate = Callable[[Any], float]
"""Returns the seconds that a point with other parameters would take."""


class TooSlowError(Exception):
    """A run exceeds its time; the runner tries a smaller one."""


class Benchmark(Generic[P]):
    """Measures the points of one experiment.

    Parameters
    ----------
    points
        The parameters of all points that will be measured.
    progress
        Function that receives the progress.
    """

    VARIANTS: ClassVar[Sequence[str]]
    """Names of all variants that can be measured."""

    def __init__(self, points: Sequence[P], progress: Progress) -> None:
        self.points = points
        self.progress = progress
        self.resources = ExitStack()
        """Resources that are closed when all points have been measured."""
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
        """Check before all measurements that a point can be measured.

        Raises
        ------
        BenchError
            If it cannot.
        """

    def why_not(self, variant: str) -> str | None:  # noqa: ARG002
        """Return the reason that a variant cannot be measured on this machine; None if it can."""
        return None

    def trial(self, variant: str, parameters: P) -> Estimate | None:  # noqa: ARG002
        """Run a small point, which compiles kernels; return an estimate for other points.

        None if there is nothing to compile. The runner calls it twice for the first point of a variant.
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
        """Return the point with the largest size among those that are equal otherwise.

        Workloads are drawn for it: smaller points have the first rows of the same workload.
        """
        alike = [
            getattr(one, size)
            for one in self.points
            if one.changed(**{size: getattr(parameters, size)}) == parameters
        ]
        return parameters.changed(**{size: max([getattr(parameters, size), *alike])})

    def kept(self, what: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value that was made for this key, if it is the last key; otherwise make it."""
        if what not in self._kept or self._kept[what][0] != key:
            self._kept.pop(what, None)  # there may not be enough memory for two
            self._kept[what] = (key, make())
        found: T = self._kept[what][1]
        return found


def silent(_stage: str, _done: int, _total: int) -> None:
    """Ignore the progress of a trial."""
