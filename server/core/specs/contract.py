"""The contract of a kind of subscription: specs to arrays, to text, and back; bounds of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from index.batches import Floats, Ints, Ranking
from safe_region.earth.frame import Frame
from server.limits import Limits
from server.model import Bound, Spec

_Spec = TypeVar("_Spec", bound=Spec)


class Kind(Protocol[_Spec]):
    """Subscriptions of one kind, over the engine's matcher, which knows numbers only.

    The class methods need no server: they describe a spec. The other methods manage the data that the
    matcher does not have.
    """

    number: int
    """The engine's number of the kind (`engine.contracts`), which the store also uses."""

    @classmethod
    def checked(cls, spec: _Spec, limits: Limits, frame: Frame) -> _Spec:
        """Return a normalised spec.

        Raises
        ------
        RefusedError
            Naming the field that is out of its limits.
        """

    @classmethod
    def needs_exact_positions(cls, spec: _Spec) -> bool:
        """Return whether the server needs the exact position of a device, so that margins are refused."""

    @classmethod
    def renamed(cls, spec: _Spec, name: Callable[[str], str]) -> _Spec:
        """Return a spec with another name for each keyword; their order stays."""

    @classmethod
    def encoded(cls, spec: _Spec) -> str:
        """Return a spec as JSON, for the store."""

    def needs_exact_position(self, handle: int) -> bool:
        """Return whether the server needs the exact position of the subscription's device. O(1)."""

    def subscribe(self, handle: int, spec: _Spec) -> None:
        """Add a subscription, parked."""

    def restore(self, handles: Ints, specs: Sequence[Any]) -> None:
        """Add many subscriptions, parked; the specs are the parsed JSON that `encoded` wrote."""

    def unsubscribe(self, handle: int) -> None:
        """Remove a subscription."""

    def spec(self, handle: int) -> _Spec:
        """Return the spec of a subscription."""

    def bound(self, handle: int, bound_m: float, bound_id: int) -> Bound:
        """Return the bound that the matcher's pair for a subscription encodes (`engine.Bounds`)."""

    def search(self, specs: Sequence[_Spec], x_m: Floats, y_m: Floats) -> Ranking:
        """Return the current results, each at one place."""
