"""Rows of a simulation in the form that the replay uses: one typed tuple a row."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from nearcast import Boolean, Bounds, Circle, GeoObject, Last, Rectangle, RegionMode, Spec, TopK
from safe_region.scoring.formulas import Similarity


class ObjectRow(NamedTuple):
    """An object to publish, and the time at which to retract it."""

    object_key: str
    publish_ms: int
    lon: float
    lat: float
    keywords: list[str]
    ttl_ms: int
    retract_ms: int | None

    def geo_object(self, payload: bytes) -> GeoObject:
        """Return the object to publish."""
        ttl_s = self.ttl_ms / 1000.0
        return GeoObject(self.keywords, self.lon, self.lat, ttl_s, payload, key=self.object_key)


class SubscriptionRow(NamedTuple):
    """A subscription of a device."""

    device_id: str
    subscription_id: int
    kind: str
    keywords: list[str] | None
    k: int | None
    alpha: float | None
    similarity: str | None
    place: list[float] | None
    expression: str | None
    bounds: list[float] | None
    center: list[float] | None
    radius_m: float | None
    extent_m: list[float] | None
    window_ms: int | None
    window_count: int | None

    def spec(self, region: RegionMode) -> Spec:
        """Return the spec of a subscription; `region` is the mode of moving top-k ones.

        Subscriptions of the mode ELLIPSE have no window, and compare texts without weights.
        """
        if self.place is not None:
            region = RegionMode.STATIONARY
        if self.expression is None:
            similarity = Similarity[str(self.similarity).upper()]
            if similarity is Similarity.TFIDF and region is RegionMode.ELLIPSE:
                similarity = Similarity.COSINE
            window = None if region is RegionMode.ELLIPSE else self._window()
            k, alpha = int(self.k or 0), float(self.alpha or 0.0)
            return TopK(self.keywords or (), k, alpha, similarity, region, window)
        where, is_moving = self._range()
        return Boolean(self.expression, where, is_moving, window=self._window())

    def _range(self) -> tuple[Bounds | Circle | Rectangle, bool]:
        """Return the range of a boolean subscription, and whether it moves."""
        if self.bounds is not None:
            return Bounds(*self.bounds), False
        if self.extent_m is not None:
            return Rectangle(*self.extent_m), True
        radius_m = float(self.radius_m or 0.0)
        if self.center is None:
            return Circle(radius_m), True
        lon, lat = self.center
        return Circle(radius_m, (lon, lat)), False

    def _window(self) -> Last | None:
        """Return the window; None for all live objects."""
        if self.window_ms is not None:
            return Last(seconds=self.window_ms / 1000.0)
        return None if self.window_count is None else Last(count=self.window_count)


class Fix(NamedTuple):
    """The position of a device at a tick."""

    device_id: str
    lon: float
    lat: float
    heading_deg: float
    speed_mps: float


def subscription_rows(table: pa.Table) -> list[SubscriptionRow]:
    """Return the subscriptions."""
    columns = [table.column(name).to_pylist() for name in SubscriptionRow._fields]
    return [SubscriptionRow(*row) for row in zip(*columns, strict=True)]
