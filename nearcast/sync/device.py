"""The blocking face of a device."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self

import nearcast.device
from nearcast.errors import NearcastError
from nearcast.geofence import Geofence
from nearcast.model import Counters, Match, Spec
from nearcast.sync.loop_thread import LoopThread
from nearcast.sync.subscription import Subscription
from safe_region.earth.frame import Frame


class Device:
    """A device attached to the server. `Client.attach` and `Fleet.attach` create it.

    Its members are those of `nearcast.Device`. It is a context manager, which calls `detach`.
    """

    def __init__(self, loop: LoopThread, device: nearcast.device.Device) -> None:
        self._loop = loop
        self._device = device

    def __repr__(self) -> str:
        return self._loop.call(self._device.__repr__).replace("nearcast.", "nearcast.sync.", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.detach()

    @property
    def id(self) -> str:
        """Name of the device on the server."""
        return self._device.id

    @property
    def frame(self) -> Frame:
        """Service area of the server and its projection."""
        return self._loop.call(lambda: self._device.frame)

    @property
    def is_online(self) -> bool:
        """Whether the device has a stream to the server. Without one it shows what it holds."""
        return self._loop.call(lambda: self._device.is_online)

    @property
    def offline_error(self) -> NearcastError | None:
        """Latest reason for which the device is offline; None while it is online, or if none is known."""
        return self._loop.call(lambda: self._device.offline_error)

    @property
    def lag_offset(self) -> int:
        """Offset up to which the server has applied the log of its cluster, while it lags; else 0."""
        return self._loop.call(lambda: self._device.lag_offset)

    @property
    def counters(self) -> Counters:
        """Present numbers of moves, reports, deltas, received objects, and bytes in each direction."""
        return self._loop.call(lambda: replace(self._device.counters))

    @property
    def subscriptions(self) -> list[Subscription]:
        """Subscriptions of the device, including those that an earlier instance of the app started."""
        found = self._loop.call(lambda: self._device.subscriptions)
        return [Subscription(self._loop, one) for one in found]

    def subscribe(self, spec: Spec, *, name: str = "") -> Subscription:
        """Start a subscription, or continue the one of that name; return it with its first result.

        See `nearcast.Device.subscribe`. Without a limit of time the call waits for the server.
        """
        return Subscription(self._loop, self._loop.run(self._device.subscribe, spec, name=name))

    def move(
        self,
        lon: float,
        lat: float,
        *,
        accuracy_m: float = 0.0,
        heading_deg: float | None = None,
        speed_mps: float | None = None,
    ) -> None:
        """Set a new position; report it only if the device left a safe region.

        It does not wait for the response: see `Client.sync`. See `nearcast.Device.move`.
        """
        self._loop.run(
            self._device.move,
            lon,
            lat,
            accuracy_m=accuracy_m,
            heading_deg=heading_deg,
            speed_mps=speed_mps,
        )

    def search(self, spec: Spec) -> list[Match]:
        """Return the result of a spec at the device's position, now. See `nearcast.Device.search`."""
        return self._loop.run(self._device.search, spec)

    def next_fix_in(self, v_max_mps: float) -> float:
        """Return the seconds for which the device need not even look where it is."""
        return self._loop.call(lambda: self._device.next_fix_in(v_max_mps))

    def geofence(self) -> Geofence:
        """Return a circle about the device within which it has nothing to report."""
        return self._loop.call(self._device.geofence)

    def detach(self) -> None:
        """Detach from the server. The server keeps the subscriptions until the next attach."""
        self._loop.end(self._device.detach)

    def forget(self) -> int:
        """Delete all data of this device on the server permanently, and end the device.

        It returns the number of its subscriptions. See `nearcast.Client.forget_device`.
        """
        return self._loop.run(self._device.forget)
