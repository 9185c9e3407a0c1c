"""The blocking face of a subscription."""

from __future__ import annotations

from collections.abc import Iterator

from nearcast.errors import NearcastError
from nearcast.geofence import Geofence, OsRegions
from nearcast.model import Change, Match, Spec, SubscriptionState
from nearcast.protocol import subscription as asynchronous
from nearcast.sync.loop_thread import LoopThread


class Subscription:
    """A subscription of a device and its current result. `Device.subscribe` creates it.

    Its members are those of `nearcast.Subscription`. Two are equal if they are the same subscription of
    the same device.
    """

    def __init__(self, loop: LoopThread, subscription: asynchronous.Subscription) -> None:
        self._loop = loop
        self._subscription = subscription

    def __repr__(self) -> str:
        return self._loop.call(self._subscription.__repr__).replace("nearcast.", "nearcast.sync.", 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subscription) and self._subscription is other._subscription

    def __hash__(self) -> int:
        return hash(self._subscription)

    @property
    def id(self) -> int:
        """Number of the subscription on the device."""
        return self._loop.call(lambda: self._subscription.id)

    @property
    def name(self) -> str:
        """The app's name, unique within the device; empty if there is none."""
        return self._subscription.name

    @property
    def spec(self) -> Spec:
        """Spec of the subscription."""
        return self._loop.call(lambda: self._subscription.spec)

    @property
    def error(self) -> NearcastError | None:
        """The error that ended the subscription; None until then."""
        return self._loop.call(lambda: self._subscription.error)

    @property
    def offline_error(self) -> NearcastError | None:
        """Latest reason for which the device is offline: that of `Device.offline_error`."""
        return self._loop.call(lambda: self._subscription.offline_error)

    @property
    def idf_generation(self) -> int:
        """Generation of the table of weights that the result uses, for Similarity.TFIDF; 0 for none."""
        return self._loop.call(lambda: self._subscription.idf_generation)

    @property
    def state(self) -> SubscriptionState:
        """State of the result: whether `results` is exact now, or the reason why not."""
        return self._loop.call(lambda: self._subscription.state)

    def results(self) -> list[Match]:
        """Return the result at the device's position, best first. See `nearcast.Subscription.results`."""
        return self._loop.call(self._subscription.results)

    def exact_results(self) -> list[Match]:
        """Return the result as soon as it is exact. See `nearcast.Subscription.exact_results`."""
        return self._loop.run(self._subscription.exact_results)

    def changes(
        self, *, reordered: bool | None = None, timeout_s: float | None = None
    ) -> Iterator[Change]:
        """Yield the changes of the result, starting with its current objects.

        The iterator ends when the subscription ends, or the client is closed. See
        `nearcast.Subscription.changes`.

        Parameters
        ----------
        reordered
            Whether to also yield changes of rank only; None for the default of the kind.
        timeout_s
            The iterator also ends when no change comes for this time; None for no limit.

        Examples
        --------
        ::

            for change in subscription.changes(timeout_s=10):
                print(change.kind, change.object.key)
        """
        return self._loop.iterate(self._subscription.changes(reordered=reordered), timeout_s)

    def states(self, *, timeout_s: float | None = None) -> Iterator[SubscriptionState]:
        """Yield `state` whenever it changes, starting with the current state.

        See `nearcast.Subscription.states`. The iterator also ends when the state does not change for
        `timeout_s`, unless that is None.
        """
        return self._loop.iterate(self._subscription.states(), timeout_s)

    def geofence(self) -> Geofence:
        """Return a circle about the device within which this subscription needs no report."""
        return self._loop.call(self._subscription.geofence)

    def os_regions(self, radius_m: float, limit: int = 19) -> OsRegions:
        """Return circles that let the app sleep. See `nearcast.Subscription.os_regions`."""
        return self._loop.call(lambda: self._subscription.os_regions(radius_m, limit))

    def unsubscribe(self) -> None:
        """End the subscription. See `nearcast.Subscription.unsubscribe`."""
        self._loop.end(self._subscription.unsubscribe)
