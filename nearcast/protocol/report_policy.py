"""Decides when the device has to report for a subscription.

The device reports when the region does not cover it. With a prefetch distance it reports a little
earlier, so that the next region has arrived when this one ends. It does not send useless reports: if the
server has already sent as many objects as it allows for a position as vague as this one, the device waits
until it has moved beyond the margin or its accuracy has improved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from nearcast.protocol.location import Location, SharedLocation
from safe_region.earth.frame import Frame, Point
from safe_region.regions.region import Evaluation, Region, inscribed_radius_m

_RADIUS_SAFETY = 1.0 - 1e-9
"""Shrinks the circle of silence by more than its rounding error."""


class _Quiet(NamedTuple):
    """A circle within which no test is needed, for fixes that are at least as accurate."""

    at: Point
    radius_m: float
    accuracy_m: float


_NOWHERE = _Quiet(Point(math.nan, math.nan), 0.0, 0.0)


class ReportPolicy:
    """Decides for one subscription whether the device reports.

    Parameters
    ----------
    region
        Region of the subscription.
    prefetch_m
        Distance from the edge of the region at which the device already reports.
    sent
        Position that the device last sent for this subscription, with an earlier region.
    """

    def __init__(self, region: Region, prefetch_m: float, sent: SharedLocation | None = None) -> None:
        self._region = region
        self._prefetch_m = prefetch_m
        self._early_m = 0.0
        self._sent = sent
        self._is_uncovered = False  # the region did not cover the margin of the position that was sent
        self._quiet = _NOWHERE

    def mark_sent(self, shared: SharedLocation) -> None:
        """Record the position that the device sent for this subscription."""
        self._sent = shared

    def answered(self, frame: Frame, evaluate: Callable[[], Evaluation], time_ms: int) -> None:
        """Record the server's response to that position.

        The region covers the margin if the device need not report anywhere in it.

        Parameters
        ----------
        frame
            Frame of the server.
        evaluate
            Evaluates the region at the position of the device.
        time_ms
            Server time of the response.
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
        """Record that the region has changed.

        If a region is smaller than twice the prefetch distance, the device uses half of it; otherwise it
        would report without end.
        """
        self._is_uncovered = False
        if self._prefetch_m > 0.0:
            self._early_m = min(self._prefetch_m, inscribed_radius_m(evaluate()) / 2.0)

    def changed(self) -> None:
        """Record that the buffer or the reach has changed."""
        self._quiet = _NOWHERE

    def is_quiet(self, point: Point, accuracy_m: float) -> bool:
        """Return whether an earlier decision already rules out a report from this point. O(1)."""
        quiet = self._quiet
        dx, dy = point.x_m - quiet.at.x_m, point.y_m - quiet.at.y_m
        is_inside = dx * dx + dy * dy < quiet.radius_m * quiet.radius_m
        return is_inside and accuracy_m <= quiet.accuracy_m

    def must_report(self, frame: Frame, location: Location, point: Point, evaluation: Evaluation) -> bool:
        """Return whether the device must report at this point, given the evaluation of its region."""
        self._quiet = _Quiet(point, self.radius_m(evaluation), location.accuracy_m)
        if not (evaluation.exact or evaluation.is_capped or evaluation.is_due):
            return not self.is_too_vague(frame, location, evaluation)
        is_early = inscribed_radius_m(evaluation) < self._early_m
        return is_early and (self._sent is None or not location.is_still(frame, self._sent))

    def is_too_vague(self, frame: Frame, location: Location, evaluation: Evaluation) -> bool:
        """Return whether a report would be useless, although the region does not cover the device."""
        sent = self._sent
        return (
            self._is_uncovered
            and sent is not None
            and not evaluation.is_lacking
            and location.accuracy_m >= sent.accuracy_m
            and location.distance_m(frame, sent) <= sent.margin_m
        )

    def fence_m(self, frame: Frame, location: Location, evaluation: Evaluation) -> float:
        """Return `radius_m`; for a position that is too vague, at least the rest of its margin."""
        radius_m = self.radius_m(evaluation)
        if self._sent is not None and self.is_too_vague(frame, location, evaluation):
            radius_m = max(radius_m, self._sent.margin_m - location.distance_m(frame, self._sent))
        return radius_m

    def radius_m(self, evaluation: Evaluation) -> float:
        """Return the radius of a circle about the evaluated position that needs no report."""
        return max(0.0, inscribed_radius_m(evaluation) * _RADIUS_SAFETY - self._early_m)
