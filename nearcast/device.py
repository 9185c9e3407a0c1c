"""A device: its position and its subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from nearcast.errors import NearcastError, RefusedError, invalid
from nearcast.geofence import Geofence
from nearcast.model import Boolean, Counters, Match, Spec, SubscriptionState
from nearcast.protocol.clock import LEAP_MS
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.keyword_warnings import warn_of_operators
from nearcast.protocol.subscription import Subscription, decided
from nearcast.transport.device_streams import DeviceStreams
from safe_region.earth.frame import Frame

_TIMER_S_MAX = 30.0
"""Longest time of a timer: the clock of the event loop may stand still while the machine is suspended."""


class Device:
    """A device attached to the server. `Client.attach` and `Fleet.attach` create it.

    It is an asynchronous context manager, which calls `detach` at the end of the block.
    """

    def __init__(
        self,
        session: DeviceSession,
        streams: DeviceStreams,
        forget_device: Callable[[str], Awaitable[int]],
        *,
        owns_link: bool,
    ) -> None:
        self._session = session
        self._forget_device = forget_device
        self._streams = streams
        self._owns_link = owns_link
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        session.on_event = self._on_event

    def __repr__(self) -> str:
        session = self._session
        state = "online" if session.is_online else "offline"
        if session.error is not None:
            state = f"ended: {session.error!r}"
        return f"<nearcast.Device {self.id!r}, subscriptions: {len(session.subscriptions)}, {state}>"

    @property
    def id(self) -> str:
        """Name of the device on the server."""
        return self._session.device_id

    @property
    def frame(self) -> Frame:
        """Service area of the server and its projection."""
        return self._session.frame

    @property
    def is_online(self) -> bool:
        """Whether the device has a stream to the server. Without one it shows what it holds."""
        return self._session.is_online

    @property
    def offline_error(self) -> NearcastError | None:
        """Latest reason for which the device is offline; None while it is online, or if none is known.

        It is the error with which the stream broke, or the last attempt to open another one failed. If
        the device has ended, it is the error that ended it.

        Examples
        --------
        ::

            async for state in subscription.states():
                error = device.offline_error
                if isinstance(error, RefusedError) and error.reason is Reason.TOKEN_EXPIRED:
                    print("the token function returns a token that has expired")
        """
        return self._session.offline_error

    @property
    def lag_offset(self) -> int:
        """Offset in the log of the cluster up to which the server has applied it, while the server lags.

        In the state LAGGING, results are those of all objects in the log up to this offset at least. 0 if
        the server does not lag.
        """
        return self._session.lag_offset

    @property
    def counters(self) -> Counters:
        """Numbers of moves, reports, deltas, received objects, and bytes in each direction."""
        return self._session.counters

    @property
    def subscriptions(self) -> list[Subscription]:
        """Subscriptions of the device, including those that an earlier instance of the app started."""
        return list(self._session.subscriptions.values())

    async def subscribe(self, spec: Spec, *, name: str = "") -> Subscription:
        """Start a subscription, or continue the one of that name; return it with its first result.

        Subscriptions are durable: an app that starts again finds them in `subscriptions`. With a name the
        app need not search for them. It subscribes again each time it starts:

        * If there is no subscription of that name, one starts.
        * If there is one with that spec, started by this instance of the app or by an earlier one, the
          call returns it and sends no request for it. If a response with the result of the present place
          is due, because the app has started again at another place, the call waits for it.
        * If there is one with another spec, it changes in place. The call returns the existing
          `Subscription` object. Until the server responds, it shows its old result. Then it has the new
          spec, and `Subscription.changes` yields the objects that left and entered. If the server refuses
          the new spec, the subscription continues with the old one. If several changes are in progress,
          the last one counts.

        Without a stream, the call waits for one. If the server then has a subscription of that name, it
        takes this spec. If the device already holds a result of that name and spec, the call returns at
        once without a stream, or while the server does not respond: with the last known result.

        Parameters
        ----------
        spec
            Spec of the subscription.
        name
            The app's name for the subscription, unique within the device. If it is empty, each call
            starts another subscription.

        Raises
        ------
        RefusedError
            If the server refuses the subscription; the error names field, value and limit.
        NearcastError
            If the subscription or the device ends while the call waits.

        Examples
        --------
        ::

            lunch = await device.subscribe(TopK({"sushi", "tea"}, k=5), name="lunch")
            print([match.object.key for match in lunch.results()])
        """
        session = self._session
        subscription = session.subscribe(spec, name)
        await subscription.answered()
        session.placement.check_range(session.frame, spec, stacklevel=2)
        warn_of_operators(spec, stacklevel=2)
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
        """Set a new position. The device checks it locally, and reports only if it left a safe region.

        Parameters
        ----------
        lon, lat
            The fix, in degrees.
        accuracy_m
            Accuracy of the fix: the device is within this distance of it.
        heading_deg, speed_mps
            Heading and speed for a report, if known. A private device never sends them.

        Raises
        ------
        RefusedError
            If a number is out of its limits; the device keeps the old position.

        Examples
        --------
        ::

            async for fix in fixes:
                await device.move(fix.lon, fix.lat, accuracy_m=fix.accuracy_m)
        """
        session = self._session
        session.move(lon, lat, heading_deg, speed_mps, accuracy_m)
        west, south, east, north = session.frame.area  # `Frame.covers`, in a third of its time
        if not (west <= lon <= east and south <= lat <= north):
            self.check_placement(stacklevel=2)
        self._wake_later()
        await self._streams.room(self.id)

    async def search(self, spec: Spec) -> list[Match]:
        """Return the result of a spec at the device's position, now, without a lasting subscription.

        For a private device, the result is exact at the true position, and the device does not send that
        position; `Client.search` does. For a poor fix, the result is exact at the position of the fix.
        The call ignores `Boolean.dwell_s`.

        Raises
        ------
        RefusedError
            If the server refuses the search; the error names field, value and limit. If the position of
            the device is too vague for an exact result, the reason is `Reason.INVALID_FIELD`, for
            `privacy_radius_m` or `accuracy_m`.
        UnavailableError
            If there is no stream, or the server does not respond, for eight seconds.
        """
        if isinstance(spec, Boolean):
            spec = replace(spec, dwell_s=0.0)
        session = self._session
        subscription = session.subscribe(spec)
        try:
            state = await decided(subscription)
            is_vague = not self._session.location.is_exact
            if state is SubscriptionState.TOO_VAGUE or (state is SubscriptionState.TOO_MANY and is_vague):
                raise self._too_vague()
            if subscription.error is not None:
                raise subscription.error
            session.placement.check_range(session.frame, spec, stacklevel=2)
            warn_of_operators(spec, stacklevel=2)
            return subscription.results()
        finally:
            session.unsubscribe(subscription)  # does not wait for the server's response

    def _too_vague(self) -> RefusedError:
        """Return the error for a position that is too vague for an exact result."""
        location = self._session.location
        field = "privacy_radius_m" if location.is_private else "accuracy_m"
        value = location.privacy_radius_m if location.is_private else location.accuracy_m
        limit = "small enough for the server to cover it: the number of objects that it sends is limited"
        return invalid(field, value, limit)

    def check_placement(self, *, stacklevel: int) -> None:
        """Warn if the position is likely a mistake; `stacklevel` is that of `warnings.warn`."""
        session = self._session
        location = session.location
        session.placement.check(session.frame, location.lon, location.lat, stacklevel + 1)

    def geofence(self) -> Geofence:
        """Return a circle about the device within which it has nothing to report.

        Register the circle with the phone, let the app sleep, and call `move` on exit. The circle is
        valid until `until_ms`, and until an object enters or leaves a result (`Subscription.changes`).
        Then call this method again. It costs O(buffers) and sends nothing.

        Raises
        ------
        ClosedError
            If the device has been detached.
        """
        self._session.require_open()
        return self._session.geofence()

    def next_fix_in(self, v_max_mps: float) -> float:
        """Return the seconds for which the device need not even look where it is.

        Until then it cannot leave its safe regions, so it has nothing to report. What the app shows in
        the meantime is the result at the last fix. The time ends at the latest when a held object
        expires, leaves a window of seconds or ends its dwell time. A delta changes it: call the method
        again after each change of a result (`Subscription.changes`) and after each fix.

        Parameters
        ----------
        v_max_mps
            The highest speed of the device, in metres a second.

        Returns
        -------
        float
            The radius of `geofence`, divided by the speed, less the age of the last fix. 0 while a
            response is due; infinite if the device may go anywhere and nothing that it holds ends.

        Raises
        ------
        RefusedError
            If the speed is not above 0, or above 10,000 m/s.
        """
        self._session.require_open()
        return self._session.next_fix_s(v_max_mps)

    def pass_time(self) -> None:
        """Process the events that are due at the current virtual time. In real time a timer does this."""
        self._session.pass_time()

    async def detach(self) -> None:
        """Detach from the server. The server keeps the subscriptions until the next attach."""
        if self._timer is not None:
            self._timer.cancel()
        await self._streams.detach(self._session)
        if self._owns_link:
            await self._streams.close()

    async def forget(self) -> int:
        """Delete all data of this device on the server permanently, and end the device.

        It calls `Client.forget_device` with the id of this device, and returns the same number.
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
        self._streams.notify()

    def _wake_later(self) -> None:
        """Set a timer for the next expiry in a buffer; the server sends no message for it."""
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
            self._timer = asyncio.get_running_loop().call_later(min(delay_s, _TIMER_S_MAX), self._expire)

    def _is_timer_late(self) -> bool:
        """Return whether the server's clock has jumped ahead since the timer was set."""
        if self._timer is None:
            return False
        left_ms = 1000.0 * (self._timer.when() - asyncio.get_running_loop().time())
        return left_ms > self._timer_ms - self._session.clock.now_ms() + LEAP_MS

    def _expire(self) -> None:
        self._timer = None
        self._timer_ms = 0
        self._session.process_due()
        self._wake_later()
