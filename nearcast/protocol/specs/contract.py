"""What the protocol needs of a kind of subscription."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from nearcast.protocol.dwell import DwellTimers
from nearcast.v1 import subscriptions_pb2
from safe_region.frame import Frame
from safe_region.region import Buffered

_Spec = TypeVar("_Spec")


class Kind(Protocol[_Spec]):
    """One kind of subscription, on the wire and on the device."""

    name: str
    """Of the field in `SubscriptionSpec.kind`."""

    def message(self, spec: _Spec) -> subscriptions_pb2.SubscriptionSpec:
        """Write what a subscription asks for.

        Raises
        ------
        RefusedError
            If something cannot be written. Limits are the server's.
        """

    def read(self, message: subscriptions_pb2.SubscriptionSpec) -> _Spec | None:
        """Read what a subscription asks for; None if it asks for something that is not known here."""

    def region(self, spec: _Spec) -> Any:  # noqa: ANN401 - each kind has its own
        """Make the region of a subscription, which holds nothing yet."""

    def dwell_timers(self, spec: _Spec, region: Any) -> DwellTimers | None:  # noqa: ANN401
        """Make what counts how long objects match; None if they are in the result at once."""

    def update(
        self,
        region: Any,  # noqa: ANN401
        delta: subscriptions_pb2.Delta,
        add: list[Buffered],
        matches_max: int,
    ) -> None:
        """Let a region take over a delta; `matches_max` is the server's limit."""

    def score(self, spec: _Spec, length_m: float, frame: Frame) -> float:
        """Return the score of an object in the result, for display; 0 if results are not scored."""


def dropped(delta: subscriptions_pb2.Delta) -> list[int]:
    """Return the ids of what a delta drops."""
    return [drop.object_id for drop in delta.drop]
