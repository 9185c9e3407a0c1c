"""When a subscription has to speak.

It speaks when its region does not cover the device, and, with a prefetch distance, a little before, so
that the next region is there when this one ends. It does not speak in vain: where the server has
already given all it gives for a position as vague as this one, the device waits until it has moved
beyond the margin or knows better where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from nearcast.protocol.location import Location, SharedLocation
from safe_region.frame import Frame, Point
from safe_region.region import Evaluation, Region, inscribed_radius_m

_RADIUS_SAFETY = 1.0 - 1e-9
"""Shrinks the circle of silence by more than its own rounding error."""


class _Quiet(NamedTuple):
    """A circle within which nothing needs to be tested, for fixes at least as good as this."""

    at: Point
    radius_m: float
    accuracy_m: float


_NOWHERE = _Quiet(Point(math.nan, math.nan), 0.0, 0.0)


class ReportPolicy:
    """One subscription's decision whether to report.

    Parameters
    ----------
    region
        What the device holds.
    prefetch_m
        How far before the edge of the region it reports already.
    sent
        The position that the server was sent last, for this subscription with another region.
    """

    def __init__(self, region: Region, prefetch_m: float, sent: SharedLocation | None = None) -> None:
        self._region = region
        self._prefetch_m = prefetch_m
        self._early_m = 0.0
        self._sent = sent
        self._is_uncovered = False  # the server did not cover the margin of what was sent
        self._quiet = _NOWHERE

    def mark_sent(self, shared: SharedLocation) -> None:
        """Note which position the server was told for this subscription."""
        self._sent = shared

    def answered(self, frame: Frame, evaluate: Callable[[], Evaluation], time_ms: int) -> None:
        """Note that the server has answered that, at a time; `evaluate` tells how it looks from here.

        The region covers the margin if the device could keep silent all over it.
        """
        self.anchored(evaluate)
        sent = self._sent
        if sent is None or sent.margin_m == 0.0:
            return
        at = frame.project(sent.lon, sent.lat)
        if not self._region.evaluate(at.x_m, at.y_m, time_ms, sent.margin_m).exact:
            self._is_uncovered = True
            self._early_m = 0.0

    def anchored(self, evaluate: Callable[[], Evaluation]) -> None:
        """Note that the region is another one.

        A region smaller than twice the prefetch distance is used to its half, or reports would not end.
        """
        self._is_uncovered = False
        if self._prefetch_m > 0.0:
            self._early_m = min(self._prefetch_m, inscribed_radius_m(evaluate()) / 2.0)

    def changed(self) -> None:
        """Note that the buffer or the reach has changed."""
        self._quiet = _NOWHERE

    def is_quiet(self, point: Point, accuracy_m: float) -> bool:
        """Whether a former decision says that nothing has to be sent from here. O(1)."""
        quiet = self._quiet
        dx, dy = point.x_m - quiet.at.x_m, point.y_m - quiet.at.y_m
        is_inside = dx * dx + dy * dy < quiet.radius_m * quiet.radius_m
        return is_inside and accuracy_m <= quiet.accuracy_m

    def must_report(self, frame: Frame, location: Location, point: Point, evaluation: Evaluation) -> bool:
        """Decide for a device at this point, where its region looks so."""
        self._quiet = _Quiet(point, self.radius_m(evaluation), location.accuracy_m)
        if not (evaluation.exact or evaluation.is_capped or evaluation.is_due):
            return not self.is_too_vague(frame, location, evaluation)
        is_early = inscribed_radius_m(evaluation) < self._early_m
        return is_early and (self._sent is None or not location.is_still(frame, self._sent))

    def is_too_vague(self, frame: Frame, location: Location, evaluation: Evaluation) -> bool:
        """Whether a report would bring nothing, though the region does not cover the device."""
        sent = self._sent
        return (
            self._is_uncovered
            and sent is not None
            and not evaluation.is_lacking
            and location.accuracy_m >= sent.accuracy_m
            and location.distance_m(frame, sent) <= sent.margin_m
        )

    def fence_m(self, frame: Frame, location: Location, evaluation: Evaluation) -> float:
        """Like `radius_m`; within the margin of a position that is too vague it is silent, too."""
        radius_m = self.radius_m(evaluation)
        if self._sent is not None and self.is_too_vague(frame, location, evaluation):
            radius_m = max(radius_m, self._sent.margin_m - location.distance_m(frame, self._sent))
        return radius_m

    def radius_m(self, evaluation: Evaluation) -> float:
        """Radius of a circle about the evaluated position within which nothing has to be sent."""
        return max(0.0, inscribed_radius_m(evaluation) * _RADIUS_SAFETY - self._early_m)
