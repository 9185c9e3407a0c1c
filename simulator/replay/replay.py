"""The replay: devices drive, publishers post, and every sampled result is audited.

It uses the server through the SDK only, with many devices a stream. The order within a tick is that of
the server within an instant: expire, retract, publish, report. A device attaches at its first position,
and stays at its last. Memory grows with devices and live objects, not with the length of the run.
"""

from __future__ import annotations

import hashlib
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack

import nearcast
from nearcast import Boolean
from safe_region.earth.frame import Frame
from simulator.replay.audit import Audit, UndecidedError
from simulator.replay.device_log import DeviceLog
from simulator.replay.fleet import Audited, ReplayedDevices
from simulator.replay.lockstep import Follower, Leader, TickChanges
from simulator.replay.options import ReplayError, ReplayOptions
from simulator.replay.pace import Pace
from simulator.replay.program_devices import ProgramDevices
from simulator.replay.published_objects import PublishedObjects
from simulator.replay.publishing import DOUBT_MS, Publishing
from simulator.replay.recording import Recording
from simulator.replay.report import ReplayReport
from simulator.replay.timeline import Moment, Timeline
from simulator.replay.track import Track
from simulator.workload.rows import Fix, SubscriptionRow

Progress = Callable[[str, int, int], None]

_AUDIT_S = 0.05
"""In real time, the time for which an audit may run before it yields to the event loop."""

_KIB_PER_MIB = 1024.0
_SCALE = 2**64


class Replay:
    """One run of a simulation against a server, or one process's share of it.

    Parameters
    ----------
    recording
        The tables to replay.
    options
        The options.
    progress
        Called as progress(stage, done, total).
    lockstep
        Synchronises it with other processes; by default there are none.
    """

    def __init__(
        self,
        recording: Recording,
        options: ReplayOptions,
        progress: Progress | None = None,
        lockstep: Leader | Follower | None = None,
    ) -> None:
        self._world = recording.world
        self._recording = recording
        self._options = options
        self._progress = progress or (lambda _stage, _done, _total: None)
        self._lockstep = lockstep or Leader()
        self.published = PublishedObjects(Frame.of(recording.world.area))
        self._pace = Pace(options.clock.times, recording.world.period_ms)
        self.track = Track(self.published.frame)
        self.range_track = Track(self.published.frame)
        self.log = DeviceLog(self.published.name_of)
        period_s = recording.world.period_ms / 1000.0
        self.report = ReplayReport(timeline=Timeline(recording.world.tick_count, period_s))

    async def run(self) -> ReplayReport:
        """Replay every tick.

        Raises
        ------
        nearcast.NearcastError
            If the server cannot be reached or refuses something.
        ReplayError
            If the server has another area or another kind of time, or another process has failed.
        SimulationError
            If a table cannot be read.
        """
        began = time.perf_counter()
        ticks = self._world.tick_count
        positions = self._recording.ticks()
        following = next(positions, None)
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            self._pace.begin()
            for number in range(ticks):
                fixes: list[Fix] = []
                if following is not None and following.number == number:
                    fixes, following = following.fixes, next(positions, None)
                await self._tick(number, fixes)
                self._progress("replay", number + 1, ticks)
            await self.devices.finish()
        report = self.report
        report.ticks = ticks
        report.simulated_s = (ticks - 1) * self._world.period_ms / 1000.0
        report.elapsed_s = time.perf_counter() - began
        report.anchored = self.track.anchored
        report.anchored_ahead = self.track.anchored_ahead
        report.held = self.track.held
        report.memory_mb_max = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
        return report

    async def _connect(self, stack: AsyncExitStack) -> None:
        """Open the streams, and check the server before any data is sent to it."""
        options = self._options
        connection = nearcast.connect(
            options.target, token=options.token, tls=options.tls, insecure=options.insecure
        )
        self._client = await stack.enter_async_context(connection)
        self.tick_number = 0
        if not options.clock.is_real:
            await self._client.advance_clock(self.now_ms())
        await self._check_server()
        doubt_ms = DOUBT_MS if options.clock.is_real else 0
        if isinstance(self._lockstep, Leader):
            self._publishing = Publishing(
                self._recording, self._client, self.published, self.now_ms, doubt_ms
            )
        rows = self._recording.subscriptions()
        self.devices = await self._devices(stack, rows)

    async def _devices(
        self, stack: AsyncExitStack, rows: Iterable[SubscriptionRow]
    ) -> ReplayedDevices | ProgramDevices:
        """Return the devices, with their streams or in their program."""
        options = self._options
        if options.program:
            program = ProgramDevices(self._client, rows, options.region, self.report)
            await program.start(options.program)
            stack.push_async_callback(program.stop)
            return program
        devices = ReplayedDevices(self._client, rows, options.region, self.report, options.speed_max_mps)
        for _ in range(options.fleet_count):
            devices.use(await stack.enter_async_context(self._client.fleet()))
        return devices

    async def _check_server(self) -> None:
        """Check the area and the kind of time of the server, with a device that attaches."""
        area = self._world.area
        lon, lat = (area.lon_min + area.lon_max) / 2.0, (area.lat_min + area.lat_max) / 2.0
        name = f"replay-{self._recording.share.part}"
        async with await self._client.attach(name, lon=lon, lat=lat) as probe:
            if probe.frame != self.published.frame:
                raise ReplayError(
                    f"the server's area is {tuple(probe.frame.area)}, must be the simulation's, "
                    f"{tuple(area)}: start it with that --area"
                )
        if self._options.clock.is_real and self._client.clock.is_virtual:
            raise ReplayError(
                "the server has virtual time, must have real time: start it without --virtual-time, or "
                "replay with --clock 1"
            )

    def now_ms(self) -> int:
        """Return the server's time; in virtual time that of the tick."""
        if self._options.clock.is_real:
            return self._client.clock.now_ms()
        return self._world.start_ms + self.tick_number * self._world.period_ms

    async def _tick(self, tick: int, fixes: Sequence[Fix]) -> None:
        late_ms = 1000.0 * await self._pace.reach(tick)
        self.report.late_ms_max = max(self.report.late_ms_max, late_ms)
        self.tick_number = tick
        await self._change_objects(tick)
        await self.devices.move(fixes)
        await self.devices.sync()
        self.follow(fixes)
        self._log(fixes)
        is_last = tick == self._world.tick_count - 1
        if is_last or tick % self._options.audit_every == 0:
            await self._audit(tick)
        self.devices.seen_id = self.published.latest_id
        if self.report.timeline.is_due(tick):
            self.report.timeline.note(tick, self._moment(late_ms))
        await self._lockstep.done(tick)

    async def _change_objects(self, tick: int) -> None:
        """Advance time, retract and publish; or receive these changes from the leading process."""
        if isinstance(self._lockstep, Leader):
            await self._pass_time()
            changes = await self._publishing.tick(tick)
            self.report.objects_published += sum(len(one.ids) for one in changes.published)
            self.report.objects_retracted += len(changes.retracted)
            await self._lockstep.send(changes)
        else:
            changes = await self._lockstep.receive()
            await self._pass_time()
            self.published.retracted(changes.retracted)
            for one in changes.published:
                self.published.published(one)
        self._note_weights(changes)

    async def _pass_time(self) -> None:
        if self._options.clock.is_real:
            self.published.pass_time(self.now_ms() - DOUBT_MS)
        else:
            self.published.pass_time(self.now_ms())
            await self._client.advance_clock(self.now_ms())
            await self.devices.pass_time(self.now_ms())

    def _note_weights(self, changes: TickChanges) -> None:
        if changes.idf_generation is not None:
            self.published.tables[changes.idf_generation] = self._recording.idf_table()

    async def _audit(self, tick: int) -> None:
        """Compare this audit's sample of results; in real time in chunks, each once all is quiet."""
        sample = [one for one in self.devices.audited() if self._is_sampled(one, tick)]
        if not self._options.clock.is_real:
            await self.devices.load_results()
            audit = Audit(self.published, tick, [self.published.at(self.now_ms())])
            for one in sample:
                self.compare(audit, one)
            return
        while sample:
            await self._client.sync()
            since_ms, end_s = self.now_ms(), time.monotonic() + _AUDIT_S
            around = self.published.around(since_ms - DOUBT_MS, since_ms + DOUBT_MS)
            audit = Audit(self.published, tick, around)
            while sample and time.monotonic() < end_s:
                self.compare(audit, sample.pop())

    def _is_sampled(self, audited: Audited, tick: int) -> bool:
        share = self._options.audit_share
        name = f"{tick}/{audited.place.device_id}/{audited.result.id}"
        if share >= 1.0:
            return True
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") < share * _SCALE

    def compare(self, audit: Audit, one: Audited) -> None:
        """Compare a result with the oracle's, and count the outcome."""
        report, result = self.report, one.result
        try:
            mismatch = audit.compare(result, one.place)
        except UndecidedError:
            report.undecided += 1
            return
        report.audited += 1
        report.audited_boolean += isinstance(result.spec, Boolean)
        report.audited_windows += result.spec.window is not None
        report.audited_weighed += result.idf_generation > 0
        report.audited_stationary += result.spec.region is nearcast.RegionMode.STATIONARY
        if mismatch is not None:
            report.add_mismatch(mismatch)

    def follow(self, fixes: Sequence[Fix]) -> None:
        """Record positions, and the regions of each device's first top-k subscription and range."""
        now_ms = self.now_ms()
        for fix in fixes:
            found = self.devices.subscriptions(fix.device_id)
            first = next((one for one in found if not isinstance(one.spec, Boolean)), None)
            self.track.follow(fix, first, now_ms)
            moving = next(
                (one for one in found if isinstance(one.spec, Boolean) and one.spec.moving), None
            )
            if moving is not None:
                self.range_track.follow(fix, moving, now_ms)

    def _log(self, fixes: Sequence[Fix]) -> None:
        """Record reports and held objects, also of devices that do not move."""
        if isinstance(self.devices, ProgramDevices):
            return  # they have neither regions nor counts of one device
        now_ms, run_ms = self.now_ms(), self.tick_number * self._world.period_ms
        for fix in fixes:
            self.log.add(fix.device_id)
        for device_id in self.log.device_ids:
            logged = self.devices.logged(device_id)
            self.log.report(logged.place, logged.reports, run_ms)
            self.log.hold(device_id, logged.subscriptions, run_ms, now_ms)

    def _moment(self, late_ms: float) -> Moment:
        counters = self.devices.counters()
        return Moment(
            counters.moves,
            counters.reports,
            counters.deltas,
            counters.bytes_sent,
            counters.bytes_received,
            self.report.objects_published,
            self.report.audited,
            self.report.mismatch_count,
            self.report.devices,
            round(late_ms),
        )
