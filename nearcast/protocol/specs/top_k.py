"""Top-k subscriptions on a device. See `Kind`."""

from __future__ import annotations

from nearcast.errors import invalid
from nearcast.model import TopK
from nearcast.protocol.converters import keyword_list, plane_point
from nearcast.protocol.shapes import number
from nearcast.protocol.specs.contract import dropped
from nearcast.protocol.specs.regions import region_message
from nearcast.protocol.specs.windows import read_window, write_window
from nearcast.v1 import subscriptions_pb2
from safe_region.earth.frame import Frame
from safe_region.regions.anchored import AnchoredRegion, StationaryRegion
from safe_region.regions.region import Buffered, RegionMode
from safe_region.scoring.formulas import Similarity, distance_scale, score_of

_INT32_MAX = 2**31 - 1


class TopKKind:
    """Kind of the subscriptions to the k best objects."""

    name = "top_k"

    def message(self, spec: TopK) -> subscriptions_pb2.SubscriptionSpec:
        """Convert a spec to a message."""
        if isinstance(spec.k, bool) or not isinstance(spec.k, int) or not 1 <= spec.k <= _INT32_MAX:
            limit = "a whole number, 1 to the k_max of the server: `(await client.status()).limits`"
            raise invalid("spec.top_k.k", spec.k, limit)
        try:
            similarity = Similarity(spec.similarity)
        except ValueError:
            raise invalid("spec.top_k.similarity", spec.similarity, "a Similarity") from None
        message = subscriptions_pb2.SubscriptionSpec(
            top_k=subscriptions_pb2.TopK(
                keywords=keyword_list(spec.keywords, "spec.top_k.keywords"),
                k=spec.k,
                alpha=number(spec.alpha, "spec.top_k.alpha"),
                similarity=subscriptions_pb2.Similarity.Name(int(similarity)),
                distance_scale_m=_written_scale(spec),
            ),
            region=region_message(spec.region),
        )
        write_window(spec.window, message)
        return message

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> TopK | None:
        """Convert a message to a spec; None if a part of it is unknown here."""
        spec = message.top_k
        try:
            similarity = Similarity(spec.similarity or Similarity.JACCARD)
            region = RegionMode(message.region or RegionMode.ANCHORED)
        except ValueError:
            return None
        words, window = frozenset(spec.keywords), read_window(message)
        scale_m = spec.distance_scale_m or None
        return TopK(words, spec.k, spec.alpha, similarity, region, window, scale_m)

    def region(self, spec: TopK) -> AnchoredRegion:
        """Return a new region of a subscription."""
        return (
            StationaryRegion(spec.k) if spec.region is RegionMode.STATIONARY else AnchoredRegion(spec.k)
        )

    def dwell_timers(self, spec: TopK, region: AnchoredRegion) -> None:
        """Return None: objects enter the result at once."""

    def update(
        self,
        region: AnchoredRegion,
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,  # noqa: ARG002 - k is small enough
    ) -> None:
        """Apply a delta to a region."""
        reach = delta.reach
        drop = dropped(delta)
        region.update(plane_point(delta.anchor), reach.length_m, reach.object_id, add, drop)
        if isinstance(region, StationaryRegion):
            region.settle(delta.time_ms, drop, is_snapshot=delta.snapshot)

    def score(self, spec: TopK, length_m: float, frame: Frame) -> float:
        """Return the score of an object in the result."""
        return score_of(length_m, spec.alpha, distance_scale(spec.distance_scale_m, frame.maxdist_m))


def _written_scale(spec: TopK) -> float:
    """Return the scale for the message, where 0 is no scale; a scale of 0 is refused."""
    if spec.distance_scale_m is None:
        return 0.0
    scale_m = number(spec.distance_scale_m, "spec.top_k.distance_scale_m")
    if scale_m == 0.0:
        limit = "a number of metres, at least 1, or None for the diagonal of the service area"
        raise invalid("spec.top_k.distance_scale_m", spec.distance_scale_m, limit)
    return scale_m
