"""What was published and acknowledged, as the test noted it: what a server must have and show."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearcast import GeoObject, Spec
from safe_region import oracle
from safe_region.earth.frame import Frame
from simulator.replay.audit import expected_list


@dataclass(frozen=True, slots=True)
class Posted:
    """An acknowledged object. In real time `created_ms` is when it was asked for: it lives no shorter."""

    object_id: int
    what: GeoObject
    created_ms: int

    @property
    def expiry_ms(self) -> int:
        return self.created_ms + round(self.what.ttl_s * 1000)


@dataclass(slots=True)
class PublishedObjects:
    """Objects that are there, and those that are gone.

    What is under way when a fault strikes is asked again under the same key until it is answered, so at
    rest everything is either here or was never accepted.
    """

    frame: Frame
    objects: dict[int, Posted] = field(default_factory=dict)
    latest_id: int = 0
    payloads: set[bytes] = field(default_factory=set)
    """Of all that was ever handed to the SDK: nothing else may be shown."""

    def posted(self, what: GeoObject, object_id: int, now_ms: int) -> None:
        """Note an acknowledged object; one of the same key is replaced."""
        self.latest_id = max(self.latest_id, object_id)
        if object_id in self.objects:
            return
        old = next((one for one in self.objects.values() if one.what.key == what.key), None)
        if old is not None:
            del self.objects[old.object_id]
        self.objects[object_id] = Posted(object_id, what, now_ms)

    def retracted(self, object_id: int) -> None:
        self.objects.pop(object_id, None)

    def pass_time(self, now_ms: int) -> None:
        """Forget what has expired."""
        for object_id in [key for key, one in self.objects.items() if one.expiry_ms <= now_ms]:
            del self.objects[object_id]

    def candidates(self) -> list[oracle.OracleObject]:
        """Return the objects as the oracle sees them."""
        return [
            oracle.OracleObject(
                one.object_id,
                *self.frame.project(one.what.lon, one.what.lat),
                frozenset(one.what.keywords),
                one.created_ms,
                one.expiry_ms,
            )
            for one in self.objects.values()
        ]

    def expected(
        self, spec: Spec, lon: float, lat: float, now_ms: int, candidates: list[oracle.OracleObject]
    ) -> list[int]:
        """Return the ids of the result at a place, by definition."""
        here = self.frame.project(lon, lat)
        found = expected_list(spec, here, self.frame, candidates, now_ms, self.latest_id)
        return [one.object_id for one, _ in found]
