"""A subscription as apps see it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from nearcast.errors import NearcastError, Reason, RefusedError, UnavailableError
from nearcast.geofence import Geofence, OsRegions
from nearcast.model import Change, ChangeKind, LiveObject, Match, Spec, SubscriptionState, TopK
from nearcast.protocol.location import Location
from nearcast.protocol.specs import kind_of
from nearcast.protocol.watcher import Watcher
from safe_region.earth.frame import Frame
from safe_region.earth.ground import ground_distance_m

_DECIDED = (
    SubscriptionState.EXACT,
    SubscriptionState.TOO_VAGUE,
    SubscriptionState.TOO_MANY,
    SubscriptionState.ENDED,
)
_AWAY = (SubscriptionState.OFFLINE, SubscriptionState.OFFLINE_STALE, SubscriptionState.LAGGING)

_PATIENCE_S = 8.0
"""Time that a result waits for a missing server, or for one that lags: as long as gRPC retries
`Client.search`. An election of the log's leader takes 4 to 7 s."""


class View(Protocol):
    """What a subscription shows of its device."""

    location: Location
    state_watchers: set[asyncio.Event]
    """Events that are set whenever the state of any subscription may have changed."""

    offline_error: NearcastError | None
    """The latest reason for which there is no stream, or no response."""

    @property
    def frame(self) -> Frame:
        """Service area of the server and its projection."""

    def process_due(self) -> None:
        """Process in real time what is due, if anything is."""


class Subscription(ABC):
    """A subscription of a device and its current result. `Device.subscribe` creates it.

    Attributes
    ----------
    id : int
        Number of the subscription on the device.
    name : str
        The app's name, unique within the device; empty if there is none.
    spec : TopK or Boolean
        Its present spec.
    error : NearcastError or None
        The error that ended the subscription; None until then.
    idf_generation : int
        Generation of the table of weights that the result uses, for `Similarity.TFIDF`; 0 for none.
    region : Region
        The objects that the device holds, and the region that it tests; for tools that draw it.
    """

    spec: Spec
    idf_generation: int
    region: Any

    def __init__(self, host: View, subscription_id: int, name: str) -> None:
        self.id = subscription_id
        self.name = name
        self.error: NearcastError | None = None
        self._host = host
        self._watchers: set[Watcher] = set()

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<nearcast.Subscription {self.id}{name}, {self.state}: {self.spec!r}>"

    @property
    @abstractmethod
    def state(self) -> SubscriptionState:
        """State of the result: whether `results` is exact now, or the reason why not."""

    def results(self) -> list[Match]:
        """Return the result at the device's position, best first. It costs O(buffer) and sends nothing.

        The result of a boolean subscription is in the order of distances on the server's plane: from the
        device, or for a fixed range from its middle.

        Examples
        --------
        ::

            for match in subscription.results():
                print(match.object.key, round(match.distance_m), "m")
        """
        kind, frame, location = kind_of(self.spec), self._host.frame, self._host.location
        return [
            Match(
                item,
                kind.score(self.spec, length_m, frame),
                ground_distance_m(location.lon, location.lat, item.lon, item.lat),
            )
            for length_m, item in self._found()
        ]

    async def exact_results(self) -> list[Match]:
        """Return the result as soon as it is exact.

        That is at once while the device is in its safe region, and otherwise after the response to its
        report: `results` right after `Device.move` may still be the result at an earlier position.
        In the states TOO_MANY and TOO_VAGUE the call returns the result that the device has.

        Raises
        ------
        UnavailableError
            If there is no stream, or the server does not respond or lags, for eight seconds.
        NearcastError
            If the subscription has ended: its `error`.

        Examples
        --------
        ::

            await device.move(lon=14.52, lat=35.90)
            for match in await subscription.exact_results():
                print(match.object.key, round(match.distance_m), "m")
        """
        await decided(self)
        if self.error is not None:
            raise self.error
        return self.results()

    async def changes(self, *, reordered: bool | None = None) -> AsyncGenerator[Change, None]:
        """Yield the changes of the result, starting with its current objects.

        A slow reader gets the net difference since its last change, so changes do not accumulate. The
        iterator ends when the subscription ends.

        Parameters
        ----------
        reordered
            Whether to also yield changes of rank only. None for the default of the kind: yes for `TopK`;
            no for `Boolean`, where results are not scored.

        Examples
        --------
        ::

            async for change in subscription.changes():
                print(change.kind, change.object.key, change.reason)
        """
        watcher = Watcher()
        self._watchers.add(watcher)
        try:
            while True:
                is_reordered_wanted = isinstance(self.spec, TopK) if reordered is None else reordered
                for change in watcher.difference([item for _, item in self._found()]):
                    if is_reordered_wanted or change.kind is not ChangeKind.REORDERED:
                        yield change
                if self.error is not None:
                    return
                await watcher.noticed()
        finally:
            self._watchers.discard(watcher)

    async def states(self) -> AsyncGenerator[SubscriptionState, None]:
        """Yield `state` whenever it changes, starting with the current state.

        A slow reader gets the latest state only. The iterator yields STALE each time that a response is
        due, even if the response follows quickly: an app that shows it may want to wait for a second
        first. It ends after ENDED.
        """
        self._host.process_due()  # after a suspend of the machine the device's timer is late
        changed = asyncio.Event()
        watchers = self._host.state_watchers
        watchers.add(changed)
        try:
            seen: SubscriptionState | None = None
            while seen is not SubscriptionState.ENDED:
                changed.clear()
                state = self.state
                if state is not seen:
                    seen = state
                    yield state
                if state is not SubscriptionState.ENDED:
                    await changed.wait()
        finally:
            watchers.discard(changed)

    @abstractmethod
    def geofence(self) -> Geofence:
        """Return a circle about the device within which this subscription needs no report.

        See `Device.geofence`.
        """

    @abstractmethod
    def os_regions(self, radius_m: float, limit: int = 19) -> OsRegions:
        """Return circles that let the app sleep until the phone is near an object.

        Register the circles with the phone's geofencing in place of the former ones, and let the app
        sleep. When the phone enters a place or leaves the refresh circle, call `Device.move` with the new
        fix, await `exact_results` and call this method again. While `must_stay_awake` is false, the phone
        enters no place without waking the app, as far as the device knows the objects: it knows nothing
        of an object that is published while the app sleeps or there is no stream.

        The places are the nearest objects that the device holds, also those that are not in the result:
        they may be beyond the range, or their dwell time has not passed. The circle of an object with an
        area is about its point, and contains all places within `radius_m` of the area. It costs O(buffer)
        and sends nothing.

        Parameters
        ----------
        radius_m
            Distance from an object at which the app is to wake, on the ground; at most the radius of the
            range.
        limit
            The most circles of objects, 1 to 99. A phone has one more, the refresh circle: iOS has 20 for
            an app, Android 100.

        Raises
        ------
        RefusedError
            If the subscription is not a `Boolean` of a `Circle` that moves, or a number is out of its
            limits.

        Examples
        --------
        ::

            regions = subscription.os_regions(150.0)
            for place in regions.places:
                print(place.object.key, place.lon, place.lat, place.radius_m)
        """

    @property
    def offline_error(self) -> NearcastError | None:
        """Latest reason for which the device is offline: that of `Device.offline_error`."""
        return self._host.offline_error

    @abstractmethod
    async def unsubscribe(self) -> None:
        """End the subscription; return when the server has confirmed it, or if there is no stream.

        Without a stream, the SDK sends the end on the next stream. If the server cannot write the end to
        its disk, the SDK sends it again after the next ping.
        """

    @abstractmethod
    def _found(self) -> list[tuple[float, LiveObject]]:
        """Return lengths and objects of the result, best first."""


async def decided(subscription: Subscription) -> SubscriptionState:
    """Wait until a result is exact, or cannot become exact; return its state.

    Raises
    ------
    UnavailableError
        If there is no stream, or the server does not respond or lags, for `_PATIENCE_S` without
        interruption.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as limit, aclosing(subscription.states()) as states:
            async for state in states:
                if state in _DECIDED:
                    return state
                if state not in _AWAY:
                    limit.reschedule(None)
                elif limit.when() is None:
                    limit.reschedule(loop.time() + _PATIENCE_S)
    except TimeoutError:
        raise _unavailable(subscription) from subscription.offline_error
    raise AssertionError("unreachable")  # states end with ENDED, which is decided


def _unavailable(subscription: Subscription) -> UnavailableError:
    reason = subscription.offline_error
    if isinstance(reason, RefusedError) and reason.reason is not Reason.DRAINING:  # it has stopped since
        waited = f"the server has not served the device for {_PATIENCE_S:.0f} s"
        return UnavailableError(f"{waited}, and last reported: {reason}", reason.hint)
    if subscription.state is SubscriptionState.LAGGING:
        return UnavailableError(
            f"the server has lagged behind the log of its cluster for {_PATIENCE_S:.0f} s"
        )
    return UnavailableError(f"the server cannot be reached: it has not responded for {_PATIENCE_S:.0f} s")
