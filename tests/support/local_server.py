"""The server in this process, but for gRPC: a store, a coordinator and a running command loop.

This is the only file of the tests' world that knows how a server is put together. What devices and
publishers send goes in as the transport hands it over; what devices are sent comes out as bytes. The
threads are the server's own. A test can hold one of them up (`Hold`) and send more meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from engine import EngineOptions
from nearcast.model import Spec
from nearcast.protocol.specs import spec_from
from nearcast.v1 import device_service_pb2
from safe_region.earth.frame import Frame
from safe_region.scoring.idf import IdfTable
from server import command as c
from server.clock import Clock
from server.commands.validation import checked_report
from server.core.coordinator import Coordinator
from server.counters import ParkReason
from server.errors import StoreError
from server.limits import Limits
from server.model import LiveObject
from server.runtime.command_loop import CommandLoop
from server.session import Event, Outbox, State, VersionedDelta
from server.store import SqliteStore
from server.store.mutations import Mutation, PutObject, PutSubscription
from server.transport.converters import device_command_from, report_from
from server.transport.event_encoder import EventEncoder
from server.transport.specs import spec_message

_Reply = TypeVar("_Reply")

_PATIENCE_S = 600.0
"""Nothing takes that long, not even compiling all kernels: who waits longer waits for ever."""


class Hold:
    """A point that threads of the server pass, where one of them can be made to wait."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_set = False
        self._skipped = 0
        self._go_on = threading.Event()
        self.reached = asyncio.Event()
        """Set when a thread waits."""

    def set(self, skipped: int = 0) -> None:
        """Let the next thread that comes wait here, or one after it."""
        self._skipped = skipped
        self.reached.clear()
        self._go_on.clear()
        self._is_set = True

    def release(self) -> None:
        """Let whoever waits go on; the next one does not wait."""
        self._is_set = False
        self._go_on.set()

    def pass_by(self) -> None:
        """Wait, if that is asked for. Called by threads of the server."""
        if not self._is_set:
            return
        if self._skipped:
            self._skipped -= 1
            return
        self._is_set = False
        self._loop.call_soon_threadsafe(self.reached.set)
        if not self._go_on.wait(_PATIENCE_S):
            raise AssertionError("a thread was held up and never released")


class Batch(NamedTuple):
    """What an object was accepted with."""

    commit: int
    matching: int
    """The number of the batch of objects that it was matched in."""


class WatchedStore(SqliteStore):
    """A store in memory that notes which commit wrote what. Commits can be held up, or made to fail."""

    def __init__(self, frame: Frame, hold: Hold) -> None:
        super().__init__(":memory:", frame)
        self._hold = hold
        self.is_full = False
        """Whether the next commit fails."""
        self.is_dead = False
        """Whether what is committed is lost, since the process is no more that would have written it."""
        self.is_committing = False
        self.commit_of: dict[int, int] = {}
        """The number of the commit that wrote an object."""
        self.seen: Counter[str] = Counter()

    def commit(self, rows: Sequence[Mutation], time_ms: int, until_ms: int = 0) -> None:
        self.is_committing = True
        try:
            self._hold.pass_by()
            if self.is_dead:
                return
            if self.is_full and rows:
                self.is_full = False
                self.seen["commits that failed"] += 1
                raise StoreError("as if the disk were full")
            super().commit(rows, time_ms, until_ms)
        finally:
            self.is_committing = False
        self.seen["commits"] += 1
        number = self.seen["commits"]
        devices = {row.device_id for row in rows if isinstance(row, PutSubscription)}
        self.seen["devices that share a commit"] += len(devices) > 1
        self.commit_of.update({row.item.object_id: number for row in rows if isinstance(row, PutObject)})


class LocalServer:
    """A server on a store in memory, in virtual time. It runs when it is made, in a running event loop.

    Parameters
    ----------
    frame, limits, options, lease_ms
        As of a `Coordinator`.
    """

    def __init__(self, frame: Frame, limits: Limits, options: EngineOptions, lease_ms: int) -> None:
        self.limits = limits
        self.options = options
        self.commit_hold = Hold()
        self.retrieval_hold = Hold()
        self.store = WatchedStore(frame, self.commit_hold)
        self.on_published: Callable[[], None] = lambda: None
        """Called in the middle of a batch, when objects of it are in the results already."""
        self.real_ms = 0
        """Real time: a device that is asked where it is has so long to answer."""
        self._seen: Counter[str] = Counter()
        self._matching_of: dict[int, int] = {}
        self._frame = frame
        self._lease_ms = lease_ms
        self._encoder = EventEncoder(frame, limits, virtual_time=True, lease_ms=lease_ms)
        self.start()

    def start(self) -> None:
        """Begin with what the store holds."""
        clock = Clock(steady=lambda: self.real_ms, is_virtual=True)
        self._coordinator = Coordinator(
            self._frame, self.limits, self.options, clock=clock, lease_ms=self._lease_ms
        )
        self._coordinator.recover(self.store.recover())
        self._loop = CommandLoop(self._coordinator, self.store)
        self._watch()
        self._running = asyncio.create_task(self._loop.run())

    async def kill(self, *, is_durable: bool) -> None:
        """End at once. A commit that is held up is written, or is not."""
        self._take_counts()
        while not self._running.done():  # before Python 3.12 `wait_for` may swallow it
            self._running.cancel()
            await asyncio.sleep(0)
        self.store.is_dead = not is_durable
        self.commit_hold.release()
        self.retrieval_hold.release()
        self._loop.close()
        self.store.is_dead = False
        if not self._running.cancelled():
            self._running.result()

    async def stop(self) -> None:
        """End as a server should: everything that waits is done first."""
        self._take_counts()
        self._loop.stop()
        await self._running
        self.store.close()

    # -- what comes in and goes out --------------------------------------------------------------

    def connect(self) -> Outbox:
        """Return the server's side of a new stream."""
        return Outbox(counters=self._coordinator.counters)

    async def read(self, outbox: Outbox, device_id: str, request: bytes | None) -> None:
        """Take what a device has sent; None if it leaves its fleet. Waits only for room."""
        self._coordinator.clock.read()
        command: c.DeviceCommand = c.Detach(outbox, device_id)
        if request is not None:
            session = self._coordinator.renew_lease(outbox, device_id)
            message = device_service_pb2.AttachRequest.FromString(request)
            if message.HasField("report"):
                report = report_from(outbox, session, device_id, message.report)
                command = checked_report(report, self.limits)
            else:
                command = device_command_from(outbox, device_id, message)
        if not self._loop.try_enqueue(command):
            self._seen["devices that waited for room"] += 1
            await self._loop.enqueue(command)

    async def submit(self, command: c.Command) -> asyncio.Future[Any]:
        """Take a command of a publisher; return what becomes the reply. Waits only for room."""
        return await self._loop.submit(command)

    def write(self, outbox: Outbox, count_max: int) -> list[tuple[str, bytes]]:
        """Write what waits for a stream, oldest first."""
        found: list[tuple[str, bytes]] = []
        while len(outbox) and len(found) < count_max:
            events = self._coordinator.router.take(outbox, count_max - len(found))
            outbox.wrote()
            found += [(device_id, self._encoder.response(event)) for device_id, event in events]
            self._seen["snapshots made in slices"] += any(
                _is_in_the_middle(outbox, *one) for one in events
            )
        return found

    def close(self, outbox: Outbox) -> None:
        """Note that a stream has ended."""
        outbox.close()
        for device_id in list(outbox.devices):
            self._loop.enqueue_detach(c.Detach(outbox, device_id))

    # -- what it does ----------------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        return self._coordinator.matching.now_ms

    def idf(self) -> tuple[int, IdfTable]:
        """Return the generation of the latest table of weights, and the table."""
        found = self.store.recover().idf
        return (0, IdfTable({})) if found is None else (found.generation, found.table)

    @property
    def latest_id(self) -> int:
        """The id given last, when nothing is planned."""
        return self._coordinator.latest_object_id

    def objects(self) -> Mapping[int, LiveObject]:
        """Return what is alive, by id."""
        return {item.object_id: item for item in self._coordinator.matching.objects.values()}

    def subscriptions_of(self, device_id: str) -> dict[int, tuple[Spec | None, str]]:
        """Return what a welcome would list: specs, as the SDK reads them, and names."""
        session = self._coordinator.sessions.get(device_id)
        router, matching = self._coordinator.router, self._coordinator.matching
        return {
            number: (spec_from(spec_message(matching.spec(handle))), router.name_of(handle))
            for number, handle in ({} if session is None else session.handles).items()
        }

    def batch_of(self, object_id: int) -> Batch:
        """Return what an object was accepted with; one that was only recovered was matched with none."""
        return Batch(self.store.commit_of[object_id], self._matching_of.get(object_id, -object_id))

    def check(self) -> None:
        """Verify everything that the server keeps."""
        self._coordinator.check()

    async def idle(self) -> None:
        """Wait until everything that was taken has been carried out."""
        await self._unless_it_ends(self._loop.execute(c.Sync()))

    async def idle_but_for_disk(self) -> None:
        """Wait until what was taken and needs no disk has been carried out, if there is room to ask."""
        answered = asyncio.Event()
        stranger = Outbox(answered.set)
        if self._loop.try_enqueue(c.Ping(stranger, "stranger", 1)):
            await self._unless_it_ends(_happened(answered))

    async def until_held(self, hold: Hold) -> bool:
        """Wait until a thread is held up, or everything was carried out without; return whether it is."""
        waiting = asyncio.create_task(hold.reached.wait())
        idle = asyncio.create_task(self.idle())
        await asyncio.wait({waiting, idle}, return_when=asyncio.FIRST_COMPLETED)
        is_held = hold.reached.is_set()
        if idle.done():
            idle.result()
        waiting.cancel()
        idle.cancel()
        await asyncio.wait({waiting, idle})
        return is_held

    async def _unless_it_ends(self, waiting: Coroutine[Any, Any, _Reply]) -> _Reply:
        """Wait for something that the command loop has to do; raise what the command loop has died of."""
        task = asyncio.ensure_future(waiting)
        try:
            done, _ = await asyncio.wait(
                {task, self._running}, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
            )
            if task in done:
                return task.result()
            if self._running in done:
                self._running.result()
            raise AssertionError("the command loop does not go on")
        finally:
            task.cancel()

    # -- what was seen ---------------------------------------------------------------------------

    def seen(self) -> Counter[str]:
        """Return how often what depends on time and threads has happened, in all lives of the server."""
        return self._seen + self.store.seen

    def _take_counts(self) -> None:
        counters = self._coordinator.counters
        self._seen["reports superseded"] += counters.reports_superseded
        self._seen["deltas coalesced"] += counters.deltas_coalesced
        self._seen["deltas sent again"] += counters.deltas_resent
        for reason in ParkReason:
            self._seen[f"devices parked, {reason.name}"] += counters.parked[reason]
        for refusal, count in counters.rejected.items():
            self._seen[f"devices refused, {refusal.name}"] += count

    def _watch(self) -> None:
        """Note what is carried out, and when; let threads that look objects up pass a hold."""
        coordinator, matching = self._coordinator, self._coordinator.matching
        retrieve, publish, evaluate = matching.retrieve, matching.publish, coordinator.evaluate
        batcher = self._loop.batcher
        follow = batcher.follow

        def watched_follow(chunk, count_max):
            following = follow(chunk, count_max)
            self._seen["portions begun while one was under way"] += following is not None
            return following

        def watched_retrieve(batch):
            self._seen["portions looked up on the other thread"] += 1
            self.retrieval_hold.pass_by()
            return retrieve(batch)

        def watched_publish(objects, *more):
            self._seen["batches of objects"] += 1
            number = self._seen["batches of objects"]
            self._matching_of.update({item.object_id: number for item in objects})
            deltas = publish(objects, *more)
            self.on_published()
            return deltas

        def watched_evaluate(batch, retrieved=None):
            self._seen["reports answered during a commit"] += len(batch) * self.store.is_committing
            self._seen["hellos evaluated together"] += len(batch.snapshots) > 1
            evaluate(batch, retrieved)

        matching.retrieve, matching.publish = watched_retrieve, watched_publish
        coordinator.evaluate, batcher.follow = watched_evaluate, watched_follow


async def _happened(event: asyncio.Event) -> None:
    await event.wait()


def _is_in_the_middle(outbox: Outbox, device_id: str, event: Event) -> bool:
    """Whether it is a snapshot of a device of which other subscriptions are still to have theirs."""
    is_snapshot = isinstance(event, VersionedDelta) and event.delta.snapshot
    session = outbox.devices.get(device_id)
    return is_snapshot and session is not None and session.state is State.CATCHING_UP
