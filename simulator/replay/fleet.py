"""The devices of a replay: they attach, subscribe, move, and count the data that they receive."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nearcast import (
    Boolean,
    ChangeKind,
    ChangeReason,
    Client,
    Counters,
    Device,
    Fleet,
    RegionMode,
    Spec,
    Subscription,
    SubscriptionState,
)
from simulator.replay.audit import Place, Result
from simulator.replay.fixes import Fixes
from simulator.replay.publishing import STAMP
from simulator.replay.report import ReplayReport
from simulator.workload.rows import Fix, SubscriptionRow

_AT_ONCE = 32
"""Devices that wait for their first results together: their requests share commits."""


class HeldResult(NamedTuple):
    """The result of a subscription of this process, read when an audit asks for it."""

    subscription: Subscription

    @property
    def id(self) -> int:
        """Number of the subscription."""
        return self.subscription.id

    @property
    def spec(self) -> Spec:
        """The spec of the subscription."""
        return self.subscription.spec

    @property
    def state(self) -> SubscriptionState:
        """How exact the result is."""
        return self.subscription.state

    @property
    def idf_generation(self) -> int:
        """The generation of the weights by which the result is exact."""
        return self.subscription.idf_generation

    @property
    def scored(self) -> list[tuple[int, float]]:
        """Ids and scores of the objects, best first."""
        return [(match.object.id, match.score) for match in self.subscription.results()]

    @property
    def region(self) -> Any:  # noqa: ANN401 - as that of a subscription
        """The objects that the device holds."""
        return self.subscription.region


class Audited(NamedTuple):
    """A subscription, and the true position of its device."""

    place: Place
    result: Result


class Logged(NamedTuple):
    """The state of a device of this process."""

    place: Place
    reports: int
    subscriptions: list[Subscription]


class DevicesOfReplay:
    """The subscriptions that devices are to have, by device.

    Parameters
    ----------
    client
        The connection to the server.
    rows
        The subscriptions of devices.
    region
        The mode of the safe region of all moving top-k subscriptions.
    report
        Collects latencies and counts.
    """

    def __init__(
        self, client: Client, rows: Iterable[SubscriptionRow], region: RegionMode, report: ReplayReport
    ) -> None:
        self._client = client
        self._region = region
        self._report = report
        self._wanted: dict[str, list[SubscriptionRow]] = {}
        for row in rows:
            self._wanted.setdefault(row.device_id, []).append(row)
        self.seen_id = 0
        """The latest object of the ticks before: latencies are measured for newer objects."""


class ReplayedDevices(DevicesOfReplay):
    """Devices by name, each on one of several streams. A stationary subscription has a device of its own.

    Parameters
    ----------
    client, rows, region, report
        See `DevicesOfReplay`.
    speed_max_mps
        The highest speed of the devices, by which their fixes are counted.
    """

    def __init__(
        self,
        client: Client,
        rows: Iterable[SubscriptionRow],
        region: RegionMode,
        report: ReplayReport,
        speed_max_mps: float,
    ) -> None:
        super().__init__(client, rows, region, report)
        self._fixes = Fixes(speed_max_mps)
        self._streams: list[Fleet] = []
        self._stream_turns: Iterator[Fleet] = iter(())
        self._devices: dict[str, Device] = {}
        self._places: dict[str, Place] = {}
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._stationary: list[Audited] = []
        self._stationary_devices: list[Device] = []
        self._watchers: list[asyncio.Task[None]] = []

    def use(self, stream: Fleet) -> None:
        """Use another stream for devices that attach from now on."""
        self._streams.append(stream)
        self._stream_turns = itertools.cycle(self._streams)

    async def move(self, fixes: Sequence[Fix]) -> None:
        """Set positions. A device that does not exist yet attaches, and subscribes.

        Raises
        ------
        nearcast.NearcastError
            If the server cannot be reached or refuses something.
        """
        new = [fix for fix in fixes if fix.device_id not in self._devices]
        for fix in fixes:
            device = self._devices.get(fix.device_id)
            if device is not None:
                await self._move(device, fix)
                self._places[fix.device_id] = Place(fix.device_id, fix.lon, fix.lat)
        for begin in range(0, len(new), _AT_ONCE):
            await asyncio.gather(*map(self._attach, new[begin : begin + _AT_ONCE]))

    async def _move(self, device: Device, fix: Fix) -> None:
        """Move a device, and count whether it would have looked."""
        looks, reports = self._fixes.looks(device, self._client.clock.now_ms()), device.counters.reports
        await device.move(fix.lon, fix.lat, heading_deg=fix.heading_deg, speed_mps=fix.speed_mps)
        self._fixes.missed += not looks and device.counters.reports > reports

    async def pass_time(self, now_ms: int) -> None:
        """Set the virtual time of the devices: the client that advances the server's has done so."""

    async def sync(self) -> None:
        """Wait until no message is in transit, and no device waits for a response."""
        await self._client.sync()
        now_ms = self._client.clock.now_ms()
        for device in self._devices.values():
            self._fixes.settle(device, now_ms)

    async def load_results(self) -> None:
        """Read the results of all subscriptions: an audit reads those of this process by itself."""

    def subscriptions(self, device_id: str) -> list[Subscription]:
        """Return the subscriptions that move with a device."""
        return self._subscriptions[device_id]

    def logged(self, device_id: str) -> Logged:
        """Return the state of a device for the log."""
        reports = self._devices[device_id].counters.reports
        return Logged(self._places[device_id], reports, self._subscriptions[device_id])

    def audited(self) -> Iterator[Audited]:
        """Yield every subscription with the position of its device."""
        for device_id, found in self._subscriptions.items():
            for one in found:
                yield Audited(self._places[device_id], HeldResult(one))
        yield from self._stationary

    def counters(self) -> Counters:
        """Return the sums of the counters of all devices. O(devices)."""
        everybody = (*self._devices.values(), *self._stationary_devices)
        return sum((device.counters for device in everybody), Counters())

    async def finish(self) -> None:
        """Record the counts of the run, and stop measuring latencies."""
        report = self._report
        report.counters = self.counters()
        report.fixes, report.wake_ups = self._fixes.fixes, self._fixes.wake_ups
        report.reports_without_fix = self._fixes.missed
        report.reports_of_stationary = sum(one.counters.reports for one in self._stationary_devices)
        for device_id, found in self._subscriptions.items():
            if are_fixed([one.spec for one in found]):
                report.fixed_devices += 1
                report.reports_of_fixed += self._devices[device_id].counters.reports
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)

    async def _attach(self, fix: Fix) -> None:
        """Attach a device, with all its subscriptions."""
        device_id = fix.device_id
        stream = next(self._stream_turns)
        self._devices[device_id] = device = await stream.attach(device_id, lon=fix.lon, lat=fix.lat)
        self._places[device_id] = Place(device_id, fix.lon, fix.lat)
        rows = self._wanted.pop(device_id, [])
        found = await asyncio.gather(
            *(device.subscribe(row.spec(self._region)) for row in rows if row.place is None)
        )
        self._subscriptions[device_id] = found
        stationary = [(row, row.place) for row in rows if row.place is not None]
        for row, (lon, lat) in stationary:
            await self._stand(stream, row, lon, lat)
        report = self._report
        report.devices += 1
        report.subscriptions += len(rows)
        report.stationary_subscriptions += len(stationary)
        report.boolean_subscriptions += sum(isinstance(one.spec, Boolean) for one in found)
        self._watchers += [asyncio.create_task(self._watch(one)) for one in found]

    async def _stand(self, stream: Fleet, row: SubscriptionRow, lon: float, lat: float) -> None:
        """Subscribe at a fixed place: on a separate device, which stays there."""
        device_id = f"{row.device_id}-place-{row.subscription_id}"
        device = await stream.attach(device_id, lon=lon, lat=lat)
        self._stationary_devices.append(device)
        subscription = await device.subscribe(row.spec(self._region))
        self._stationary.append(Audited(Place(device.id, lon, lat), HeldResult(subscription)))
        self._watchers.append(asyncio.create_task(self._watch(subscription)))

    async def _watch(self, subscription: Subscription) -> None:
        """Measure the time from publication to the change of a result, as an app would see it."""
        async for change in subscription.changes():
            is_new = change.object.id > self.seen_id
            if change.kind is ChangeKind.ENTERED and change.reason is ChangeReason.PUBLISHED and is_new:
                (sent_ns,) = STAMP.unpack(change.object.payload)
                self._report.latencies.add((time.perf_counter_ns() - sent_ns) / 1e6)


def are_fixed(specs: Sequence[Spec]) -> bool:
    """Return whether there are subscriptions, and all have ranges that are fixed in place."""
    return bool(specs) and all(isinstance(spec, Boolean) and not spec.moving for spec in specs)
