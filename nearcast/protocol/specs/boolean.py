"""Boolean subscriptions on a device. See `Kind`."""

from __future__ import annotations

from nearcast import canonical
from nearcast.clause import Clause
from nearcast.errors import invalid
from nearcast.expressions import clauses_of
from nearcast.limits import DWELL_MS_MAX
from nearcast.milliseconds import DURATION_S_MIN, milliseconds
from nearcast.model import Boolean
from nearcast.protocol.converters import keyword_list
from nearcast.protocol.dwell import DwellTimers
from nearcast.protocol.shapes import number
from nearcast.protocol.specs.contract import dropped
from nearcast.protocol.specs.ranges import checked_range
from nearcast.protocol.specs.regions import checked_region
from nearcast.protocol.specs.windows import checked_window, last_of
from nearcast.v1 import subscriptions_pb2
from nearcast.wire.geometry import plane_point
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Circle, Rectangle
from safe_region.regions.ranges import FixedRegion, RangeRegion, RectangleRegion
from safe_region.regions.region import Buffered

_MS_PER_S = 1000.0
_DWELL_S_MAX = DWELL_MS_MAX // 1000


class BooleanKind:
    """Kind of the subscriptions to all objects that match an expression within a range."""

    def to_canonical(self, spec: Boolean) -> canonical.Boolean:
        """Return the canonical form of a spec."""
        field = "spec.boolean.clauses"
        clauses = tuple(
            canonical.Clause(
                keyword_list(one.required, f"{field}[{i}].required"),
                keyword_list(one.excluded, f"{field}[{i}].excluded"),
            )
            for i, one in enumerate(clauses_of(spec.expression))
        )
        is_moving, dwell_ms = bool(spec.moving), _dwell_ms(spec)
        where = checked_range(spec.range, is_moving=is_moving)
        region, window = checked_region(spec.region), checked_window(spec.window)
        return canonical.Boolean(clauses, where, is_moving, region, dwell_ms, window)

    def from_canonical(self, spec: canonical.Boolean) -> Boolean | None:
        """Return a spec as apps see it; None if its range cannot move, or has to."""
        if not isinstance(spec.range, Circle) and isinstance(spec.range, Rectangle) != spec.is_moving:
            return None
        clauses = tuple(Clause(frozenset(one.required), frozenset(one.excluded)) for one in spec.clauses)
        dwell_s, window = spec.dwell_ms / _MS_PER_S, last_of(spec.window)
        return Boolean(clauses, spec.range, spec.is_moving, spec.region, dwell_s, window)

    def region(self, spec: Boolean) -> FixedRegion:
        """Return a new region of a subscription."""
        if spec.moving and isinstance(spec.range, Circle):
            return RangeRegion(spec.range.radius_m)
        if spec.moving and isinstance(spec.range, Rectangle):
            return RectangleRegion(spec.range.width_m, spec.range.height_m)
        return FixedRegion()

    def dwell_timers(self, spec: Boolean, region: FixedRegion) -> DwellTimers | None:
        """Return new dwell timers, or None if the spec has no dwell time."""
        return DwellTimers(_dwell_ms(spec), region) if spec.dwell_s else None

    def update(
        self,
        region: FixedRegion,
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,
    ) -> None:
        """Apply a delta to a region."""
        slack = delta.slack
        region.update(
            plane_point(delta.anchor), slack.slack_m, slack.too_many, matches_max, add, dropped(delta)
        )

    def score(self, spec: Boolean, length_m: float, frame: Frame) -> float:  # noqa: ARG002
        """Return 0: results are not scored."""
        return 0.0


def _dwell_ms(spec: Boolean) -> int:
    """Validate the dwell time of a spec and return it in milliseconds."""
    field, limit = "spec.boolean.dwell_s", f"0, or {DURATION_S_MIN} to {_DWELL_S_MAX} seconds"
    dwell_s = number(spec.dwell_s, field, limit)
    if dwell_s and not DURATION_S_MIN <= dwell_s <= _DWELL_S_MAX:
        raise invalid(field, spec.dwell_s, limit)
    return milliseconds(dwell_s)
