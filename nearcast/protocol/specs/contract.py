"""Interface of a kind of subscription."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from nearcast.protocol.dwell import DwellTimers
from nearcast.v1 import subscriptions_pb2
from safe_region.earth.frame import Frame
from safe_region.regions.region import Buffered

_Spec = TypeVar("_Spec")


class Kind(Protocol[_Spec]):
    """One kind of subscription, in messages and on the device."""

    name: str
    """Name of the field in `SubscriptionSpec.kind`."""

    def message(self, spec: _Spec) -> subscriptions_pb2.SubscriptionSpec:
        """Convert a spec to a message.

        Raises
        ------
        RefusedError
            If a field cannot be converted. The server checks the limits.
        """

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> _Spec | None:
        """Convert a message to a spec; None if a part of it is unknown here."""

    def region(self, spec: _Spec) -> Any:  # noqa: ANN401 - each kind has its own
        """Return a new region of a subscription, with an empty buffer."""

    def dwell_timers(self, spec: _Spec, region: Any) -> DwellTimers | None:  # noqa: ANN401
        """Return new dwell timers; None if objects enter the result at once."""

    def update(
        self,
        region: Any,  # noqa: ANN401
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,
    ) -> None:
        """Apply a delta to a region; `matches_max` is the server's limit."""

    def score(self, spec: _Spec, length_m: float, frame: Frame) -> float:
        """Return the score of an object in the result, for display; 0 if results are not scored."""


def dropped(delta: subscriptions_pb2.Delta) -> list[int]:
    """Return the ids of the objects that a delta drops."""
    return [drop.object_id for drop in delta.drop]
