"""Top-k subscriptions on a device. See `Kind`."""

from __future__ import annotations

from nearcast import canonical
from nearcast.errors import invalid
from nearcast.model import TopK
from nearcast.protocol.converters import keyword_list
from nearcast.protocol.shapes import number
from nearcast.protocol.specs.contract import dropped
from nearcast.protocol.specs.regions import checked_region
from nearcast.protocol.specs.windows import checked_window, last_of
from nearcast.v1 import subscriptions_pb2
from nearcast.wire.geometry import plane_point
from safe_region.earth.frame import Frame
from safe_region.regions.anchored import AnchoredRegion, StationaryRegion
from safe_region.regions.region import Buffered, RegionMode
from safe_region.scoring.formulas import Similarity, distance_scale, score_of

_INT32_MAX = 2**31 - 1


class TopKKind:
    """Kind of the subscriptions to the k best objects."""

    def to_canonical(self, spec: TopK) -> canonical.TopK:
        """Return the canonical form of a spec."""
        if isinstance(spec.k, bool) or not isinstance(spec.k, int) or not 1 <= spec.k <= _INT32_MAX:
            limit = "a whole number, 1 to the k_max of the server (100 by default)"
            raise invalid("spec.top_k.k", spec.k, limit)
        try:
            similarity = Similarity(spec.similarity)
        except ValueError:
            names = ", ".join(f"Similarity.{one.name}" for one in Similarity)
            raise invalid("spec.top_k.similarity", spec.similarity, f"one of {names}") from None
        return canonical.TopK(
            keyword_list(spec.keywords, "spec.top_k.keywords"),
            spec.k,
            number(spec.alpha, "spec.top_k.alpha"),
            similarity,
            distance_scale_m=_canonical_scale(spec),
            region=checked_region(spec.region),
            window=checked_window(spec.window),
        )

    def from_canonical(self, spec: canonical.TopK) -> TopK:
        """Return a spec as apps see it."""
        keywords, scale_m = frozenset(spec.keywords), spec.distance_scale_m or None
        window = last_of(spec.window)
        return TopK(keywords, spec.k, spec.alpha, spec.similarity, spec.region, window, scale_m)

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


def _canonical_scale(spec: TopK) -> float:
    """Return the canonical scale, where 0 is no scale; a scale of 0 is refused."""
    if spec.distance_scale_m is None:
        return 0.0
    scale_m = number(spec.distance_scale_m, "spec.top_k.distance_scale_m")
    if scale_m == 0.0:
        limit = "a number of metres, at least 1, or None for the diagonal of the service area"
        raise invalid("spec.top_k.distance_scale_m", spec.distance_scale_m, limit)
    return scale_m
