"""Boolean subscriptions on a device. See `Kind`."""

from __future__ import annotations

import math

from nearcast.errors import invalid
from nearcast.expressions import clauses_of
from nearcast.model import Boolean, Clause
from nearcast.protocol.converters import keyword_list, plane_point
from nearcast.protocol.dwell import DwellTimers
from nearcast.protocol.specs.contract import dropped
from nearcast.protocol.specs.ranges import range_from, write_range
from nearcast.protocol.specs.windows import is_same_window, read_window, write_window
from nearcast.v1 import subscriptions_pb2
from safe_region.earth import Circle, Rectangle
from safe_region.frame import Frame
from safe_region.ranges import FixedRegion, RangeRegion, RectangleRegion
from safe_region.region import Buffered, RegionMode

_MS_PER_S = 1000.0
_DWELL_MS_WRITTEN_MAX = 2**53
"""Far beyond what a server takes, which says so."""
_REGIONS = (0, RegionMode.ANCHORED, RegionMode.NEAREST)


class BooleanKind:
    """Everything that matches an expression, within a range."""

    name = "boolean"

    def message(self, spec: Boolean) -> subscriptions_pb2.SubscriptionSpec:
        """Write what a subscription asks for."""
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
        found = subscriptions_pb2.SubscriptionSpec(
            boolean=message, region=subscriptions_pb2.RegionMode.Name(int(spec.region))
        )
        write_window(spec.window, found)
        return found

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> Boolean | None:
        """Read what a subscription asks for; None if in a way that is not known here."""
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

    def is_same(self, spec: Boolean, other: Boolean) -> bool:
        """Whether the server's normalised spec is what was asked for."""
        is_same_place = spec.range == other.range and spec.moving == other.moving
        is_same_place &= spec.region == other.region and _dwell_ms(spec) == _dwell_ms(other)
        is_same_place &= is_same_window(spec.window, other.window)
        return is_same_place and set(clauses_of(spec.expression)) == set(other.expression)

    def region(self, spec: Boolean) -> FixedRegion:
        """Make the region of a subscription."""
        if spec.moving and isinstance(spec.range, Circle):
            return RangeRegion(spec.range.radius_m)
        if spec.moving and isinstance(spec.range, Rectangle):
            return RectangleRegion(spec.range.width_m, spec.range.height_m)
        return FixedRegion()

    def dwell_timers(self, spec: Boolean, region: FixedRegion) -> DwellTimers | None:
        """Make what counts how long objects match, if that matters."""
        return DwellTimers(_dwell_ms(spec), region) if spec.dwell_s else None

    def update(
        self,
        region: FixedRegion,
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,
    ) -> None:
        """Let a region take over a delta."""
        slack = delta.slack
        region.update(
            plane_point(delta.anchor), slack.slack_m, slack.too_many, matches_max, add, dropped(delta)
        )

    def score(self, spec: Boolean, length_m: float, frame: Frame) -> float:  # noqa: ARG002
        """Results are not scored."""
        return 0.0


def _dwell_ms(spec: Boolean) -> int:
    """Return for how long an object must match; of a part of a millisecond, all of it."""
    dwell_s = spec.dwell_s
    if not (isinstance(dwell_s, int | float) and 0.0 <= dwell_s < math.inf):
        raise invalid("spec.boolean.dwell_s", dwell_s, "a number of seconds, 0 or more")
    return min(math.ceil(dwell_s * _MS_PER_S), _DWELL_MS_WRITTEN_MAX)
