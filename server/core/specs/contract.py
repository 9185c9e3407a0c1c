"""What core needs of a kind of subscription: specs to arrays, to text, and back; bounds in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from index.batches import Floats, Ints, Ranking
from safe_region.frame import Frame
from server.limits import Limits
from server.model import Bound, Spec

_Spec = TypeVar("_Spec", bound=Spec)


class Kind(Protocol[_Spec]):
    """Subscriptions of one kind, over the engine's matcher, which knows numbers only.

    The class methods need no server: they say what a spec is. The others keep what the matcher does not.
    """

    number: int
    """The engine's number of the kind (`engine.contracts`); the store keeps it, too."""

    @classmethod
    def checked(cls, spec: _Spec, limits: Limits, frame: Frame) -> _Spec:
        """Normalise a spec.

        Raises
        ------
        RefusalError
            Naming the field that is out of its limits.
        """

    @classmethod
    def needs_exact_positions(cls, spec: _Spec) -> bool:
        """Whether the server has to know where the device is, so that no margin is allowed."""

    @classmethod
    def renamed(cls, spec: _Spec, name: Callable[[str], str]) -> _Spec:
        """Return a spec with another name for each keyword; their order stays."""

    @classmethod
    def encoded(cls, spec: _Spec) -> str:
        """Write a spec as JSON, for the store."""

    def needs_exact_position(self, handle: int) -> bool:
        """Whether the server has to know where the device of a subscription is. O(1)."""

    def subscribe(self, handle: int, spec: _Spec) -> None:
        """Make a subscription known, parked."""

    def restore(self, handles: Ints, specs: Sequence[Any]) -> None:
        """Make many subscriptions known, parked; specs as `encoded` wrote them, read as JSON."""

    def unsubscribe(self, handle: int) -> None:
        """Forget a subscription."""

    def spec(self, handle: int) -> _Spec:
        """Return what a subscription asks for."""

    def bound(self, handle: int, bound_m: float, bound_id: int) -> Bound:
        """Return what the matcher's pair for a subscription stands for (`engine.Bounds`)."""

    def search(self, specs: Sequence[_Spec], x_m: Floats, y_m: Floats) -> Ranking:
        """Return results at one place each, now."""
