"""Boolean subscriptions on a device. See `Kind`."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.model import Boolean, Circle, LiveObject, Match
from nearcast.protocol.converters import keyword_list, number, plane_point
from nearcast.protocol.specs.contract import dropped
from nearcast.v1 import geometry_pb2, subscriptions_pb2
from safe_region.frame import Frame
from safe_region.keywords import normalised_keyword
from safe_region.ranges import RangeRegion
from safe_region.region import Buffered, RegionMode


class BooleanKind:
    """Every object that has all keywords, in a circle about the device."""

    name = "boolean"

    def message(self, spec: Boolean) -> subscriptions_pb2.SubscriptionSpec:
        """Write what a subscription asks for."""
        if not isinstance(spec.range, Circle):
            raise invalid("spec.boolean.range", spec.range, "a Circle")
        radius_m = number(spec.range.radius_m, "spec.boolean.circle.radius_m")
        clause = subscriptions_pb2.Clause(
            required=keyword_list(spec.keywords, "spec.boolean.clauses[0].required")
        )
        return subscriptions_pb2.SubscriptionSpec(
            boolean=subscriptions_pb2.Boolean(
                clauses=[clause], circle=geometry_pb2.Circle(radius_m=radius_m), moving=True
            ),
            region=subscriptions_pb2.REGION_MODE_ANCHORED,
        )

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> Boolean | None:
        """Read what a subscription asks for; None if in a way that is not known here."""
        boolean = message.boolean
        is_known = (
            len(boolean.clauses) == 1
            and not boolean.clauses[0].excluded
            and boolean.WhichOneof("range") == "circle"
            and boolean.moving
            and not boolean.dwell_ms
            and message.region in (0, RegionMode.ANCHORED)
        )
        if not is_known:
            return None
        return Boolean(frozenset(boolean.clauses[0].required), Circle(boolean.circle.radius_m))

    def is_same(self, spec: Boolean, other: Boolean) -> bool:
        """Whether the server's normalised spec is what was asked for."""
        keywords = {normalised_keyword(keyword) for keyword in spec.keywords}
        return keywords == other.keywords and spec.range == other.range

    def region(self, spec: Boolean) -> RangeRegion:
        """Make the region of a subscription."""
        return RangeRegion(spec.range.radius_m)

    def update(
        self,
        region: RangeRegion,
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,
    ) -> None:
        """Let a region take over a delta."""
        slack = delta.slack
        region.update(
            plane_point(delta.anchor), slack.slack_m, slack.too_many, matches_max, add, dropped(delta)
        )

    def match(self, spec: Boolean, item: LiveObject, length_m: float, r_m: float, frame: Frame) -> Match:  # noqa: ARG002
        """Return an object of the result as users see it."""
        return Match(item, 0.0, length_m)
