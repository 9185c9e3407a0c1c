"""The replay: devices drive, publishers post, and every sampled list is audited.

It speaks to a server through the SDK alone, in virtual time, many devices a stream. Within a tick, as
within an instant of the server: expire, retract, publish, report.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import NamedTuple

import nearcast
from nearcast import (
    Boolean,
    ChangeKind,
    ChangeReason,
    Counters,
    Device,
    Fleet,
    RegionMode,
    Subscription,
)
from safe_region.frame import Frame
from simulator.replay.audit import PublishedObjects, audit_list
from simulator.replay.report import ReplayReport
from simulator.replay.track import Track
from simulator.simulation import Simulation
from simulator.workload.rows import (
    Fix,
    ObjectRow,
    SubscriptionRow,
    by_tick,
    fixes_by_tick,
    object_rows,
    retractions_by_tick,
    subscription_rows,
)

Progress = Callable[[str, int, int], None]

_REQUEST_MAX = 1000
_STAMP = struct.Struct("<q")
"""The payload of every replayed object: when it was handed to the SDK, monotonic nanoseconds."""


class ReplayError(Exception):
    """The server does not fit the simulation."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay.

    Parameters
    ----------
    target
        The server's address.
    token
        What it asks for.
    fleet_count
        Streams that the devices are spread over.
    audit_every
        Ticks between audits; the first and the last tick are always audited.
    region
        How the safe region of every top-k subscription that moves works.
    """

    target: str
    token: str | None = None
    fleet_count: int = 4
    audit_every: int = 15
    region: RegionMode = RegionMode.ANCHORED


class Audited(NamedTuple):
    """A subscription, and where its device truly is."""

    device_id: str
    subscription: Subscription
    lon: float
    lat: float


class Replay:
    """One run of a simulation against a server.

    Parameters
    ----------
    simulation
        The tables to replay.
    options
        Where and how.
    progress
        Called as progress(stage, done, total).
    """

    def __init__(
        self, simulation: Simulation, options: ReplayOptions, progress: Progress | None = None
    ) -> None:
        world = simulation.world
        self._world = world
        self._options = options
        self._progress = progress or (lambda _stage, _done, _total: None)
        self._fixes = fixes_by_tick(simulation.trajectories)
        self._subscription_rows = subscription_rows(simulation.subscriptions)
        rows = object_rows(simulation.objects)
        self._publications = by_tick(rows, world.period_ms)
        self._retractions = retractions_by_tick(rows, world.period_ms)
        self._published = PublishedObjects(Frame.of(world.area))
        is_weighed = any(row.similarity == "tfidf" for row in self._subscription_rows)
        self._idf_table = simulation.idf_table() if is_weighed else None
        self._devices: dict[str, Device] = {}
        self._subscriptions: dict[str, list[Subscription]] = {}
        self._standing: list[Audited] = []
        self._standing_devices: list[Device] = []
        self._watchers: list[asyncio.Task[None]] = []
        self.track = Track(self._published.frame)
        self.range_track = Track(self._published.frame)
        self.report = ReplayReport()

    async def run(self) -> ReplayReport:
        """Replay every tick.

        Raises
        ------
        nearcast.NearcastError
            If the server cannot be reached or refuses something.
        """
        began = time.perf_counter()
        ticks = len(self._fixes)
        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(
                nearcast.connect(self._options.target, token=self._options.token)
            )
            self._publisher = self._client.publisher()
            await self._client.advance_clock(self._now_ms(0))
            await self._publish(0)
            if self._idf_table is not None:
                generation = await self._client.set_idf(self._idf_table)
                self._published.tables[generation] = self._idf_table
            await self._attach(stack)
            await self._client.sync()
            self._audit(0)
            for tick in range(1, ticks):
                await self._tick(tick)
                self._progress("replay", tick, ticks - 1)
            await self._finish()
        self.report.ticks = ticks
        self.report.simulated_s = (ticks - 1) * self._world.period_ms / 1000.0
        self.report.elapsed_s = time.perf_counter() - began
        return self.report

    def _now_ms(self, tick: int) -> int:
        return self._world.start_ms + tick * self._world.period_ms

    async def _attach(self, stack: AsyncExitStack) -> None:
        fleets = [
            await stack.enter_async_context(self._client.fleet())
            for _ in range(self._options.fleet_count)
        ]
        standing = [(row, row.place) for row in self._subscription_rows if row.place is not None]
        total = len(self._fixes[0]) + len(standing)
        wanted: dict[str, list[SubscriptionRow]] = {}
        for row in self._subscription_rows:
            if row.place is None:
                wanted.setdefault(row.device_id, []).append(row)
        for i, fix in enumerate(self._fixes[0]):
            device = await fleets[i % len(fleets)].attach(fix.device_id, lon=fix.lon, lat=fix.lat)
            self._devices[fix.device_id] = device
            self._subscriptions[fix.device_id] = await asyncio.gather(
                *(
                    device.subscribe(row.spec(self._options.region))
                    for row in wanted.get(fix.device_id, [])
                )
            )
            self._progress("attach", i + 1, total)
        for i, (row, (lon, lat)) in enumerate(standing):
            await self._stand(fleets[i % len(fleets)], row, lon, lat)
            self._progress("attach", len(self._fixes[0]) + i + 1, total)
        self._check_frames()
        self._watchers = [
            asyncio.create_task(self._watch(one.subscription)) for one in self._audited(self._fixes[0])
        ]
        self.report.devices = len(self._devices)
        self.report.subscriptions = len(self._subscription_rows)
        self.report.standing_subscriptions = len(standing)
        self.report.boolean_subscriptions = sum(
            isinstance(one.spec, Boolean) for found in self._subscriptions.values() for one in found
        )

    async def _stand(self, fleet: Fleet, row: SubscriptionRow, lon: float, lat: float) -> None:
        """Subscribe where a subscription stands: on a device of its own, which stays there."""
        device = await fleet.attach(f"{row.device_id}-place-{row.subscription_id}", lon=lon, lat=lat)
        self._standing_devices.append(device)
        subscription = await device.subscribe(row.spec(self._options.region))
        self._standing.append(Audited(device.id, subscription, lon, lat))

    def _check_frames(self) -> None:
        for device in (*self._devices.values(), *self._standing_devices):
            if device.frame != self._published.frame:
                raise ReplayError(
                    f"the server's area is {tuple(device.frame.area)}, must be the simulation's, "
                    f"{tuple(self._world.area)}: start it with that --area"
                )

    async def _tick(self, tick: int) -> None:
        now_ms = self._now_ms(tick)
        self._published.pass_time(now_ms)
        await self._client.advance_clock(now_ms)
        await self._retract(tick)
        await self._publish(tick)
        for fix in self._fixes[tick]:
            await self._devices[fix.device_id].move(
                fix.lon, fix.lat, heading_deg=fix.heading_deg, speed_mps=fix.speed_mps
            )
        await self._client.sync()
        self._follow(tick)
        last = tick == len(self._fixes) - 1
        if last or tick % self._options.audit_every == 0:
            self._audit(tick)

    async def _publish(self, tick: int) -> None:
        rows = self._publications.get(tick, [])
        now_ms = self._now_ms(tick)
        for chunk in _distinct_chunks(rows):
            payload = _STAMP.pack(time.perf_counter_ns())
            objects = [row.geo_object(payload) for row in chunk]
            ids = await self._publisher.publish(objects)
            self._published.published(chunk, ids, now_ms)
            self.report.objects_published += len(ids)

    async def _retract(self, tick: int) -> None:
        found = (self._published.live_id(row) for row in self._retractions.get(tick, []))
        ids = [object_id for object_id in found if object_id is not None]
        if ids:
            await self._publisher.retract(*ids)
            self._published.retracted(ids)
            self.report.objects_retracted += len(ids)

    async def _watch(self, subscription: Subscription) -> None:
        """Take the time from publication to the change of a result, as an app would see it."""
        async for change in subscription.changes():
            is_new = change.object.created_ms == self._client.clock.now_ms()
            if change.kind is ChangeKind.ENTERED and change.reason is ChangeReason.PUBLISHED and is_new:
                (sent_ns,) = _STAMP.unpack(change.object.payload)
                self.report.latencies_ms.append((time.perf_counter_ns() - sent_ns) / 1e6)

    def _audited(self, fixes: Sequence[Fix]) -> Iterator[Audited]:
        """Yield every subscription with where its device is."""
        for fix in fixes:
            for one in self._subscriptions[fix.device_id]:
                yield Audited(fix.device_id, one, fix.lon, fix.lat)
        yield from self._standing

    def _audit(self, tick: int) -> None:
        now_ms = self._now_ms(tick)
        for device_id, subscription, lon, lat in self._audited(self._fixes[tick]):
            mismatch = audit_list(self._published, subscription, device_id, lon, lat, tick, now_ms)
            self.report.audited += 1
            self.report.audited_boolean += isinstance(subscription.spec, Boolean)
            self.report.audited_windows += subscription.spec.window is not None
            self.report.audited_weighed += subscription.idf_generation > 0
            if mismatch is not None:
                self.report.mismatches.append(mismatch)
        self.report.audited_standing += len(self._standing)

    def _follow(self, tick: int) -> None:
        """Record where devices are, and regions of their first top-k subscription and moving range."""
        now_ms = self._now_ms(tick)
        for fix in self._fixes[tick]:
            found = self._subscriptions[fix.device_id]
            first = next((one for one in found if not isinstance(one.spec, Boolean)), None)
            self.track.follow(fix, first, now_ms)
            moving = next(
                (one for one in found if isinstance(one.spec, Boolean) and one.spec.moving), None
            )
            if moving is not None:
                self.range_track.follow(fix, moving, now_ms)

    async def _finish(self) -> None:
        everybody = (*self._devices.values(), *self._standing_devices)
        self.report.counters = sum((device.counters for device in everybody), Counters())
        self.report.reports_of_standing = sum(one.counters.reports for one in self._standing_devices)
        for device_id, found in self._subscriptions.items():
            if found and all(map(_is_fixed, found)):
                self.report.fixed_devices += 1
                self.report.reports_of_fixed += self._devices[device_id].counters.reports
        anchored = max(1, self.track.anchored)
        self.report.objects_held_mean = self.track.held / anchored
        self.report.anchors_ahead_share = self.track.anchored_ahead / anchored
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)


def _is_fixed(subscription: Subscription) -> bool:
    return isinstance(subscription.spec, Boolean) and not subscription.spec.moving


def _distinct_chunks(rows: Sequence[ObjectRow]) -> list[list[ObjectRow]]:
    """Split into requests of at most 1,000 objects, none with the same key twice."""
    chunks: list[list[ObjectRow]] = []
    keys: set[str] = set()
    for row in rows:
        if not chunks or len(chunks[-1]) == _REQUEST_MAX or row.object_key in keys:
            chunks.append([])
            keys = set()
        chunks[-1].append(row)
        keys.add(row.object_key)
    return chunks
