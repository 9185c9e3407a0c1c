"""Boolean subscriptions on a device. See `Kind`."""

from __future__ import annotations

from nearcast.clause import Clause
from nearcast.errors import invalid
from nearcast.expressions import clauses_of
from nearcast.milliseconds import DURATION_S_MIN, milliseconds
from nearcast.model import Boolean
from nearcast.protocol.converters import keyword_list, plane_point
from nearcast.protocol.dwell import DwellTimers
from nearcast.protocol.shapes import number
from nearcast.protocol.specs.contract import dropped
from nearcast.protocol.specs.ranges import range_from, write_range
from nearcast.protocol.specs.regions import region_message
from nearcast.protocol.specs.windows import read_window, write_window
from nearcast.v1 import subscriptions_pb2
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Circle, Rectangle
from safe_region.regions.ranges import FixedRegion, RangeRegion, RectangleRegion
from safe_region.regions.region import Buffered, RegionMode

_MS_PER_S = 1000.0
_DWELL_S_MAX = 24 * 3600
"""Limit of the server."""
_REGIONS = (0, RegionMode.ANCHORED, RegionMode.NEAREST)


class BooleanKind:
    """Kind of the subscriptions to all objects that match an expression within a range."""

    name = "boolean"

    def message(self, spec: Boolean) -> subscriptions_pb2.SubscriptionSpec:
        """Convert a spec to a message."""
        message = subscriptions_pb2.Boolean(
            clauses=[
                subscriptions_pb2.Clause(
                    required=keyword_list(one.required, f"spec.boolean.clauses[{i}].required"),
                    excluded=keyword_list(one.excluded, f"spec.boolean.clauses[{i}].excluded"),
                )
                for i, one in enumerate(clauses_of(spec.expression))
            ],
            moving=bool(spec.moving),
            dwell_ms=_dwell_ms(spec),
        )
        write_range(spec.range, message)
        found = subscriptions_pb2.SubscriptionSpec(boolean=message, region=region_message(spec.region))
        write_window(spec.window, found)
        return found

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> Boolean | None:
        """Convert a message to a spec; None if a part of it is unknown here."""
        boolean = message.boolean
        where = range_from(boolean)
        if where is None or message.region not in _REGIONS:
            return None
        clauses = tuple(
            Clause(frozenset(one.required), frozenset(one.excluded)) for one in boolean.clauses
        )
        region = RegionMode(message.region or RegionMode.ANCHORED)
        dwell_s, window = boolean.dwell_ms / _MS_PER_S, read_window(message)
        return Boolean(clauses, where, boolean.moving, region, dwell_s, window)

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
