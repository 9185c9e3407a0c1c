"""A device: its position, its subscriptions, its silence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Self

from nearcast.errors import RefusedError, UnavailableError, invalid
from nearcast.geofence import Geofence
from nearcast.model import Boolean, Counters, Match, Spec, SubscriptionState
from nearcast.protocol.clock import LEAP_MS
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.subscription import Subscription
from nearcast.transport.device_stream import DeviceStream
from safe_region.frame import Frame

_DECIDED = (
    SubscriptionState.EXACT,
    SubscriptionState.TOO_VAGUE,
    SubscriptionState.TOO_MANY,
    SubscriptionState.ENDED,
)
_AWAY = (SubscriptionState.OFFLINE, SubscriptionState.OFFLINE_STALE)

_SEARCH_S = 8.0
"""How long a search waits for a server that is away: as long as gRPC repeats `Client.search`."""


class Device:
    """A device attached to the server. Made by `Client.attach` and `Fleet.attach`."""

    def __init__(
        self,
        session: DeviceSession,
        stream: DeviceStream,
        forget_device: Callable[[str], Awaitable[int]],
        *,
        owns_link: bool,
    ) -> None:
        self._session = session
        self._forget_device = forget_device
        self._stream = stream
        self._owns_link = owns_link
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        session.on_event = self._on_event

    @property
    def id(self) -> str:
        """Its name on the server."""
        return self._session.device_id

    @property
    def frame(self) -> Frame:
        """The server's service area and its projection."""
        return self._session.frame

    @property
    def counters(self) -> Counters:
        """Moves, reports, deltas, objects received, bytes each way."""
        return self._session.counters

    @property
    def subscriptions(self) -> list[Subscription]:
        """Its subscriptions, those made by an earlier instance of the app included."""
        return list(self._session.subscriptions.values())

    async def subscribe(self, spec: Spec, *, name: str = "") -> Subscription:
        """Begin a subscription, or continue the one of that name; return it with its first result.

        Subscriptions are durable: an app that starts again finds them. With a name it need not look for
        them, as it says again what it wants:

        * there is no subscription of that name: one begins;
        * there is one with that spec, made by this instance of the app or by an earlier one: it is
          returned, and nothing is sent;
        * there is one with another spec: it changes in place. It is returned, the same object that the
          app may have of it already. That shows what it showed until the server has answered; then it is
          of the new spec, and `Subscription.changes` yields what that makes of the result. If the new
          spec is refused, it goes on with the old one. Of several changes under way, the last counts.

        Without a stream, it waits for one; what the server has under that name by then is changed.

        Parameters
        ----------
        spec
            What it asks for.
        name
            The app's name for it, unique among those of the device; empty for none: then each call
            begins another subscription.

        Raises
        ------
        RefusedError
            If the server refuses it, naming field, value and limit.
        """
        session = self._session
        subscription = session.subscribe(spec, name)
        await subscription.answered()
        session.placement.check_range(session.frame, spec, stacklevel=2)
        return subscription

    async def move(
        self,
        lon: float,
        lat: float,
        *,
        accuracy_m: float = 0.0,
        heading_deg: float | None = None,
        speed_mps: float | None = None,
    ) -> None:
        """Take over a new position. Checks locally; sends only when some safe region is left.

        Parameters
        ----------
        lon, lat
            The fix, in degrees.
        accuracy_m
            What it is good to: the device is within this distance of it.
        heading_deg, speed_mps
            What a report tells besides, if known; a private device never tells them.

        Raises
        ------
        RefusedError
            If a number is out of its limits; the old position is kept.
        """
        session = self._session
        session.move(lon, lat, heading_deg, speed_mps, accuracy_m)
        west, south, east, north = session.frame.area  # `Frame.covers`, in a third of its time
        if not (west <= lon <= east and south <= lat <= north):
            self.check_placement(stacklevel=2)
        self._wake_later()
        await self._stream.room()

    async def search(self, spec: Spec) -> list[Match]:
        """Return the result of a subscription here and now, without standing.

        Exact at the true position of a private device too, which `Client.search` would have to be told,
        and at a poor fix as if that were right. A time to dwell does not matter.

        Raises
        ------
        RefusedError
            If the server refuses it, naming field, value and limit. So is a search of a device whose
            position is too vague for an exact result: `Reason.INVALID_FIELD`, for `privacy_radius_m` or
            `accuracy_m`.
        UnavailableError
            If there is no stream, or the server does not respond, for eight seconds.
        """
        if isinstance(spec, Boolean):
            spec = replace(spec, dwell_s=0.0)
        session = self._session
        subscription = session.subscribe(spec)
        try:
            state = await _decided(subscription)
            is_vague = not self._session.location.is_exact
            if state is SubscriptionState.TOO_VAGUE or (state is SubscriptionState.TOO_MANY and is_vague):
                raise self._too_vague()
            if subscription.error is not None:
                raise subscription.error
            session.placement.check_range(session.frame, spec, stacklevel=2)
            return subscription.results()
        finally:
            session.unsubscribe(subscription)  # a server that does not respond is not waited for

    def _too_vague(self) -> RefusedError:
        """Return why a result cannot be exact here."""
        location = self._session.location
        field = "privacy_radius_m" if location.is_private else "accuracy_m"
        value = location.privacy_radius_m if location.is_private else location.accuracy_m
        limit = "small enough for the server to cover it: it sends only so many objects"
        return invalid(field, value, limit)

    def check_placement(self, *, stacklevel: int) -> None:
        """Warn if the device is where none is likely to be; `stacklevel` as of `warnings.warn`."""
        session = self._session
        location = session.location
        session.placement.check(session.frame, location.lon, location.lat, stacklevel + 1)

    def geofence(self) -> Geofence:
        """Return a circle about the device within which it has nothing to say.

        Register it with the phone, sleep, and call `move` on exit. It holds until `until_ms`, and until
        an object arrives or goes (`Subscription.changes`): then ask again. O(buffers), nothing is sent.
        """
        self._session.require_open()
        return self._session.geofence()

    def pass_time(self) -> None:
        """Look at the clock: for virtual time; in real time a timer does it."""
        self._session.pass_time()

    async def detach(self) -> None:
        """Leave the server. Subscriptions stay there and come back at the next attach."""
        if self._timer is not None:
            self._timer.cancel()
        await self._stream.detach(self._session)
        if self._owns_link:
            await self._stream.close()

    async def forget(self) -> int:
        """Delete all that the server keeps of this device, for good, and end it.

        As `Client.forget_device` of its own id, which describes it.
        """
        count = await self._forget_device(self.id)
        if self._timer is not None:
            self._timer.cancel()
        return count

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.detach()

    def _on_event(self) -> None:
        self._wake_later()
        self._stream.notify()

    def _wake_later(self) -> None:
        """Be there when the next object in a buffer expires: nobody will tell."""
        clock = self._session.clock
        expiry_ms = self._session.next_expiry_ms()
        if expiry_ms == self._timer_ms and not self._is_timer_late():
            return
        self._timer_ms = expiry_ms
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if expiry_ms and not clock.is_virtual:
            delay_s = max(0.0, (expiry_ms - clock.now_ms()) / 1000.0)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _is_timer_late(self) -> bool:
        """Whether the server's clock has leaped ahead since the timer was set."""
        if self._timer is None:
            return False
        left_ms = 1000.0 * (self._timer.when() - asyncio.get_running_loop().time())
        return left_ms > self._timer_ms - self._session.clock.now_ms() + LEAP_MS

    def _expire(self) -> None:
        self._timer = None
        self._timer_ms = 0
        self._session.pass_time()


async def _decided(subscription: Subscription) -> SubscriptionState:
    """Wait for the state of a new subscription that its first result has.

    Raises
    ------
    UnavailableError
        If there is no stream, or the server does not respond, for `_SEARCH_S` in a row.
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
                    limit.reschedule(loop.time() + _SEARCH_S)
    except TimeoutError:
        message = f"the server cannot be reached: it has not responded for {_SEARCH_S:.0f} s"
        raise UnavailableError(message) from None
    raise AssertionError("unreachable")  # states end with ENDED, which is decided
