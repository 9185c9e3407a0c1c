"""Top-k subscriptions on a device. See `Kind`."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.model import LiveObject, Match, TopK
from nearcast.protocol.converters import keyword_list, plane_point
from nearcast.protocol.shapes import number
from nearcast.protocol.specs.contract import dropped
from nearcast.protocol.specs.windows import is_same_window, read_window, write_window
from nearcast.v1 import subscriptions_pb2
from safe_region.anchored import AnchoredRegion, StandingRegion
from safe_region.frame import Frame
from safe_region.keywords import normalised_keyword
from safe_region.region import Buffered, RegionMode
from safe_region.scoring import Similarity, score_of

_INT32_MAX = 2**31 - 1


class TopKKind:
    """The k best, wherever the device is."""

    name = "top_k"

    def message(self, spec: TopK) -> subscriptions_pb2.SubscriptionSpec:
        """Write what a subscription asks for."""
        if isinstance(spec.k, bool) or not isinstance(spec.k, int) or not 0 <= spec.k <= _INT32_MAX:
            raise invalid("spec.top_k.k", spec.k, "a whole number, at least 1")
        try:
            similarity = Similarity(spec.similarity)
        except ValueError:
            raise invalid("spec.top_k.similarity", spec.similarity, "a Similarity") from None
        try:
            region = RegionMode(spec.region)
        except ValueError:
            raise invalid("spec.region", spec.region, "a RegionMode") from None
        message = subscriptions_pb2.SubscriptionSpec(
            top_k=subscriptions_pb2.TopK(
                keywords=keyword_list(spec.keywords, "spec.top_k.keywords"),
                k=spec.k,
                alpha=number(spec.alpha, "spec.top_k.alpha"),
                similarity=subscriptions_pb2.Similarity.Name(int(similarity)),
            ),
            region=subscriptions_pb2.RegionMode.Name(int(region)),
        )
        write_window(spec.window, message)
        return message

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> TopK | None:
        """Read what a subscription asks for; None if in a way that is not known here."""
        spec = message.top_k
        try:
            similarity = Similarity(spec.similarity or Similarity.JACCARD)
            region = RegionMode(message.region or RegionMode.ANCHORED)
        except ValueError:
            return None
        window = read_window(message)
        return TopK(frozenset(spec.keywords), spec.k, spec.alpha, similarity, region, window)

    def is_same(self, spec: TopK, other: TopK) -> bool:
        """Whether the server's normalised spec is what was asked for."""
        return (
            {normalised_keyword(keyword) for keyword in spec.keywords} == other.keywords
            and spec.k == other.k
            and spec.alpha == other.alpha
            and spec.similarity == other.similarity
            and spec.region == other.region
            and is_same_window(spec.window, other.window)
        )

    def region(self, spec: TopK) -> AnchoredRegion:
        """Make the region of a subscription."""
        return StandingRegion(spec.k) if spec.region is RegionMode.STANDING else AnchoredRegion(spec.k)

    def dwell_timers(self, spec: TopK, region: AnchoredRegion) -> None:
        """Objects are in the result at once."""

    def update(
        self,
        region: AnchoredRegion,
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,  # noqa: ARG002 - k is small enough
    ) -> None:
        """Let a region take over a delta."""
        reach = delta.reach
        drop = dropped(delta)
        region.update(plane_point(delta.anchor), reach.length_m, reach.object_id, add, drop)
        if isinstance(region, StandingRegion):
            region.settle(delta.time_ms, drop, is_snapshot=delta.snapshot)

    def match(self, spec: TopK, item: LiveObject, length_m: float, r_m: float, frame: Frame) -> Match:
        """Return an object of the result as users see it."""
        return Match(item, score_of(length_m, spec.alpha, frame.maxdist_m), length_m - r_m)
