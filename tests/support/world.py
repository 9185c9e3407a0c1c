"""A whole nearcast in one process without sockets: server, wire messages, devices, publishers, oracle.

The server is the real one, with its command loop, its threads and its store
(`tests/support/local_server.py`). Devices are the SDK's own sessions (`tests/support/links.py`), and what
they send and are sent are protobuf bytes. So everything but gRPC is the real thing. Time is virtual.

All that is chosen comes from one seed. What happens while a thread of the server works happens while that
thread is held up, so a seed gives the same run again, but for what two threads do at the same instant.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from engine import CostModel, EngineOptions
from engine.options import StationaryPolicy
from index.catalogue import (
    CLAUSE_INDEXES,
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_MOVING_INDEX,
    DEFAULT_OBJECT_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    MOVING_INDEXES,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
    weighted_index,
)
from index.entry import NO_INDEX
from index.iqf_plus import IqfPlusObjectIndex
from index.square import Square
from nearcast.errors import Reason, RefusedError
from nearcast.model import Boolean, Spec, SubscriptionState
from nearcast.protocol.subscription import Subscription
from safe_region import oracle
from safe_region.earth.ground import ground_distance_m
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.idf import IdfTable
from server import command as c
from server import model as m
from server.limits import Limits
from simulator.replay.audit import oracle_range, oracle_window
from tests.support.draws import PLANE, SIDE, Draws
from tests.support.links import Device, Link, Source
from tests.support.local_server import LocalServer
from tests.support.model import Model, Submitted, oracle_subscription

EPOCH_MS = 1_000
ROUNDS_MAX = 1_000
_HABITS = 15
"""Different kinds of devices, see `Device`."""
FEW_ENTRIES = 6
"""In some runs a longer list of the object index has a tree: there are but some dozens of objects."""


def options_of(seed: int, buffer_extra: int | None = None) -> EngineOptions:
    """Return how the engine works: in three of four runs as in production, else with other indexes."""
    square = None if seed % 2 else Square(0.0, 0.0, float(SIDE))
    subscription_name = DEFAULT_SUBSCRIPTION_INDEX
    object_index = OBJECT_INDEXES[DEFAULT_OBJECT_INDEX]
    clause_index = CLAUSE_INDEXES[DEFAULT_CLAUSE_INDEX]
    moving_index = MOVING_INDEXES.get(DEFAULT_MOVING_INDEX)
    if seed % 4 == 1:
        object_index = lambda: IqfPlusObjectIndex(FEW_ENTRIES)  # noqa: E731 - a factory as the others are
    elif seed % 4 == 3:
        number, subscription_names = seed // 4, sorted(SUBSCRIPTION_INDEXES)
        subscription_name = subscription_names[number % len(subscription_names)]
        clause_names = sorted(CLAUSE_INDEXES)
        clause_index = CLAUSE_INDEXES[clause_names[number % len(clause_names)]]
        moving_names = [NO_INDEX, *sorted(MOVING_INDEXES)]
        moving_index = MOVING_INDEXES.get(moving_names[number // 2 % len(moving_names)])
        object_names = sorted(OBJECT_INDEXES)
        object_index = OBJECT_INDEXES[object_names[number % len(object_names)]]
        if buffer_extra is None:
            buffer_extra = (0, 1, None, 3)[number // 2 % 4]
    subscription_index = SUBSCRIPTION_INDEXES[subscription_name]
    weighted = weighted_index(subscription_name)
    costs = CostModel(extra_max=(6, 2, 32)[seed % 3], speed_mps=1.0)
    margin_extra_max = 4 if seed % 5 == 1 else 200  # in some runs margins cannot be covered
    return EngineOptions(
        buffer_extra,
        object_index,
        lambda: subscription_index(square),
        costs,
        margin_extra_max,
        matches_max=(3, 1000)[seed % 2],
        stationary=list(StationaryPolicy)[seed % 3],
        maxdist_m=PLANE.maxdist_m,
        clause_index=lambda: clause_index(square),
        weighted_index=lambda: weighted(square),
        moving_index=None if moving_index is None else lambda: moving_index(square),
    )


def _grown(
    where: oracle.OracleCircle | oracle.OracleExtent, by_m: float
) -> oracle.OracleCircle | oracle.OracleExtent:
    """Return a range that moves, larger on all sides."""
    if isinstance(where, oracle.OracleCircle):
        return oracle.OracleCircle(where.radius_m + by_m)
    return oracle.OracleExtent(where.width_m + 2.0 * by_m, where.height_m + 2.0 * by_m)


def _search(chance: random.Random, draws: Draws) -> c.Search:
    """Return a search at any place."""
    window = chance.choice((m.NO_WINDOW, m.Window(duration_ms=4), m.Window(count=7)))
    scale_m = draws.distance_scale_m() or 0.0
    words, k = draws.words(4), chance.randint(1, 9)
    spec = m.TopK(words, k, 0.5, window=window, distance_scale_m=scale_m)
    return c.Search(spec, *draws.position())


class World:
    """Everything, driven step by step from one seed. Made in a running event loop; `stop` ends it.

    Parameters
    ----------
    seed
        Of all that is chosen.
    limits
        What the server accepts.
    buffer_extra
        b; None to choose it by cost, or by the seed where indexes are not those of production.
    is_line
        Whether everything lies on one line.
    """

    def __init__(
        self,
        seed: int,
        limits: Limits | None = None,
        buffer_extra: int | None = None,
        *,
        is_line: bool = False,
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.draws = Draws(self.random, is_line=is_line)
        # In some runs devices are given up that have not been seen for as long as time leaps.
        lease_ms = 9 if seed % 3 == 1 else 0
        options = options_of(seed, buffer_extra)
        limits = limits or Limits()
        # Of a device there is one instance here that counts, so those before it are never too young.
        limits = replace(limits, matches_max=options.matches_max, take_over_ms=0)
        self.server = LocalServer(PLANE, limits, options, lease_ms)
        self.model = Model(PLANE)
        self.publishers: list[Source[c.Command]] = [Source(self._submit), Source(self._submit)]
        self.searcher: Source[c.Command] = Source(self._submit)
        self._searcher_random = random.Random(seed)
        self._searcher_draws = Draws(self._searcher_random, is_line=is_line)
        self.server.on_published = self._search_in_between
        self.links: list[Link] = []
        self.seen: Counter[str] = Counter()
        """What has been compared, and how often what depends on time and threads has happened."""
        self.tables = {0: IdfTable({})}
        """Tables of weights by generation."""
        self._asked_ms = EPOCH_MS
        self._device_count = 0
        self.publishers[0].unread.append(c.AdvanceClock(EPOCH_MS))

    async def stop(self) -> None:
        """End the server as it should end."""
        for link in self.links:
            link.cut()
        await self.idle()
        await self.server.stop()
        self.seen += self.server.seen()

    async def crash(self, *, is_durable: bool) -> None:
        """Kill the server and start it again. A commit that is held up has been written, or has not."""
        for source in (*self.publishers, self.searcher):
            source.close()
        await self.server.kill(is_durable=is_durable)
        for link in self.links:
            link.receive(self.random.choice((0, 1, 256)))  # what had been written before
            link.lose_server()
        self.server.start()
        self.seen["times killed"] += 1
        generation, table = self.server.idf()
        given = [one.command.table for one in self.model.submitted if isinstance(one.command, c.SetIdf)]
        assert table in [*self.tables.values(), *given], "what is in force was never given"
        self.tables[generation] = table
        unanswered_count = self.model.recover(
            self.server.objects(), self.server.now_ms, self.server.latest_id
        )
        self.seen["commands that were durable and never answered"] += unanswered_count

    # -- who there is ----------------------------------------------------------------------------

    def add_link(self, *, is_fleet: bool = False) -> Link:
        """Add what carries devices."""
        self.links.append(Link(self.server, is_fleet=is_fleet))
        return self.links[-1]

    def add_device(self, link: Link | None = None) -> Device:
        """Add a device to a fleet, or on a stream of its own, and let it attach."""
        self._device_count += 1
        return self._begin(f"device-{self._device_count}", link or self.add_link())

    def _begin(
        self, device_id: str, link: Link, kind: int | None = None, *, take_over: bool = False
    ) -> Device:
        """Begin an instance of a device's app, with habits of its own."""
        if kind is None:
            kind = self.seed + int(device_id.rpartition("-")[2])
        nonce = self.random.randbytes(8)
        place = self.draws.position()
        device = Device(device_id, nonce, link, place, self.random, kind, take_over=take_over)
        device.clock.adjust(self.model.now_ms, is_virtual=True)
        link.devices[device_id] = device
        if link.stream is None:
            link.open()
        else:
            device.session.connect()
        return device

    def devices(self) -> Iterator[Device]:
        return (device for link in self.links for device in link.devices.values())

    # -- what devices do -------------------------------------------------------------------------

    def subscribe(self, device: Device, *, is_named: bool | None = None) -> None:
        """Begin a subscription; one with a name may be there, and is continued or changed in place."""
        if is_named is None:
            is_named = self.random.random() < 0.5
        name = self.random.choice(("lunch", "dinner")) if is_named else ""
        spec = self.draws.spec(is_anchored=device.is_vague)
        if name and self.random.random() < 0.2:
            spec = device.requested.get(name, spec)
        before = device.session.registry.named(name)
        self.seen["names asked for again"] += bool(name) and before is not None
        device.subscribe(spec, name)

    def unsubscribe(self, device: Device) -> None:
        if device.session.subscriptions:
            number = self.random.choice(sorted(device.session.subscriptions))
            device.requested.pop(device.session.subscriptions[number].name, None)
            device.session.unsubscribe(device.session.subscriptions[number])

    def move(self, device: Device, *, is_far: bool | None = None) -> None:
        """Move by a step, or to anywhere."""
        if self.random.random() < 0.2 if is_far is None else is_far:
            device.lon, device.lat = self.draws.position()
        else:
            lon, lat = self.draws.step()
            device.lon, device.lat = device.lon + lon, device.lat + lat
        accuracy_m = self.random.choice((0.0, 0.5, 2.0)) if device.may_be_vague else 0.0
        heading_deg = self.random.choice((None, 0.0, 90.0, self.random.uniform(-360.0, 360.0)))
        speed_mps = self.random.choice((None, 0.0, 1.0, 50.0))
        device.session.move(device.lon, device.lat, heading_deg, speed_mps, accuracy_m=accuracy_m)
        if device.is_impatient:
            device.report_all()

    def reinstall(self, device: Device) -> None:
        """Begin a new instance of a device's app, which knows nothing, under the same name."""
        link, error = device.link, device.session.error
        if error is not None:
            link.notify_server()  # it may have been refused while the one before was attached
            if link.is_fleet and isinstance(error, RefusedError) and error.reason is Reason.TOO_MANY:
                del link.devices[device.id]
                link = self.add_link()
        elif link.is_fleet:
            link.send(device.id, None)
        else:
            link.cut()
        in_use = (
            Reason.DEVICE_IN_USE,
            Reason.SUPERSEDED,
        )  # by one before it, whose stream is there still
        take_over = isinstance(error, RefusedError) and error.reason in in_use
        self._begin(device.id, link, self.random.randrange(_HABITS), take_over=take_over)

    def take_over(self, device: Device) -> None:
        """Begin a new instance elsewhere; the one before vanishes, which the server does not notice."""
        link = device.link
        del link.devices[device.id]
        if not link.is_fleet:
            link.abandon()
        self.seen["instances replaced"] += 1
        self._begin(device.id, self.add_link(), self.random.randrange(_HABITS), take_over=True)

    def leave_unanswered(self) -> None:
        """Let so much real time pass that whoever was asked where it is should have answered."""
        self.server.real_ms += self.server.limits.answer_ms_max + 1

    # -- what publishers do ----------------------------------------------------------------------

    def submit(self, command: c.Command) -> None:
        """Let one of the publishers send a command, which the server reads later."""
        self.random.choice(self.publishers).unread.append(command)

    async def _submit(self, command: c.Command) -> None:
        one = Submitted(command)  # in the order in which the commands of a caller come into the queue
        self.model.submitted.append(one)
        try:
            one.answer = await self.server.submit(command)
        except BaseException:
            with contextlib.suppress(ValueError):  # the server was killed
                self.model.submitted.remove(one)
            raise

    def publish(self, key: str = "") -> None:
        count = 1 if key else self.random.choice((1, 1, 1, 5))
        self.submit(c.Publish(tuple(self.draws.new_object(key) for _ in range(count))))

    def publish_many(self, count: int) -> None:
        """Publish objects that live for long."""
        self.submit(c.Publish(tuple(self.draws.new_object(ttl_ms=10_000) for _ in range(count))))

    def publish_again(self) -> None:
        """Retry what was done already, as publishers may that give keys."""
        keyed = self.model.keyed()
        if keyed:
            self.submit(c.Publish((self.random.choice(keyed),)))

    def publish_outside(self) -> None:
        """Publish what is refused as a whole."""
        good, bad = self.draws.new_object(), self.draws.new_object()
        self.submit(c.Publish((good, bad._replace(lat=SIDE + 1.0, area=None))))

    def retract(self) -> None:
        """Retract objects, which may be gone by then."""
        known = sorted(self.model.ids()) or [0]
        keyed = [self.model.id_of[new.payload] for new in self.model.keyed()] or known
        ids = self.random.choices(self.random.choice((known, keyed)), k=self.random.choice((1, 1, 3)))
        self.submit(c.Retract(tuple(ids)))

    def retract_by_key(self) -> None:
        """Retract objects by keys, which others may have by then; some are named by their ids, too."""
        keyed = self.model.keyed()
        if not keyed:
            return
        chosen = self.random.choices(keyed, k=self.random.choice((1, 1, 2)))
        ids = [self.model.id_of[new.payload] for new in chosen if self.random.random() < 0.3]
        self.submit(c.Retract(tuple(ids), keys=tuple(new.key for new in chosen)))

    def advance(self) -> None:
        """Let time go on; always by the same publisher, as it must not go back."""
        self._asked_ms = max(self._asked_ms, self.model.now_ms) + self.random.choice((0, 1, 1, 3, 10))
        self.publishers[0].unread.append(c.AdvanceClock(self._asked_ms))

    def search(self) -> None:
        self.submit(_search(self.random, self.draws))

    def _search_in_between(self) -> None:
        """Let a search be read, perhaps, while the server carries a batch out."""
        if self._searcher_random.random() < 0.3:
            self.seen["searches while a batch is carried out"] += 1
            self.searcher.unread.append(_search(self._searcher_random, self._searcher_draws))
            self.searcher.let_read(1)

    def set_idf(self) -> None:
        """Let another table of weights come into force, unless one is."""
        self.submit(c.SetIdf(self.draws.idf_table()))

    def forget(self, device: Device) -> None:
        """End the subscriptions of a device, if it is away."""
        self.submit(c.Forget((device.id,)))

    def delete(self, device: Device) -> None:
        """Delete all that is kept of a device, wherever it is."""
        self.submit(c.ForgetDevice(device.id))

    # -- messages --------------------------------------------------------------------------------

    def _sources(self) -> list[Source[Any]]:
        devices = (stream.up for link in self.links for stream in link.streams())
        return [*devices, *self.publishers, self.searcher]

    def let_read(self, *, is_all: bool = True) -> None:
        """Let the server read what was sent, or some of it, from all at the same time."""
        sources = self._sources()
        self.random.shuffle(sources)
        for source in sources:
            source.let_read(len(source.unread) if is_all else self.random.choice((0, 1, 2, 9)))

    async def idle(self) -> None:
        """Wait until the server has done all that it has read. What it has answered must be right."""
        for source in self._sources():
            await source.finish()
        await self.server.idle()
        self._settle()

    def _settle(self) -> None:
        """Take over what publishers were answered, and note what was done together."""
        self.model.may_fail = self.server.seen()["commits that failed"] > 0
        batch = None
        is_refused = False
        for one in self.model.settle():
            if one.reply.exception() is not None:
                is_refused = True
            elif isinstance(one.command, c.SetIdf):
                self.tables[one.reply.result()] = one.command.table
            elif isinstance(one.command, c.Publish):
                before, batch = batch, self.server.batch_of(max(one.reply.result()))
                if before is not None and before.commit == batch.commit:
                    self.seen["publications that share a commit"] += 1
                    self.seen["publications matched as one batch"] += before.matching == batch.matching
                    self.seen["refusals in the middle of a batch"] += is_refused
                is_refused = False

    def transfer_some(self) -> None:
        """Let some streams be written to, and some devices read, a little."""
        for link in self.links:
            if self.random.random() < 0.5:
                link.write(self.random.choice((1, 3, 256)))
            if self.random.random() < 0.5:
                link.receive(self.random.choice((1, 3, 256)))

    async def deliver(self) -> None:
        """Carry messages both ways until there are none."""
        for _ in range(ROUNDS_MAX):
            for link in self.links:
                link.notify_server()
            for device in [one for one in self.devices() if one.is_refused]:
                self.reinstall(device)
            self.let_read()
            await self.idle()
            for link in self.links:
                link.write()
            received = [link.receive() for link in self.links]
            if not any(received) and not any(source.unread for source in self._sources()):
                return
        raise AssertionError("devices and server do not fall silent")

    # -- what must hold --------------------------------------------------------------------------

    async def audit(self) -> None:
        """Deliver everything, then compare every list of every online device with the oracle."""
        await self.deliver()
        for device in self.devices():
            device.clock.observe(self.model.now_ms)
            device.session.pass_time()
        await self.deliver()
        assert self.server.now_ms == self.model.now_ms
        assert set(self.server.objects()) == self.model.ids()
        assert self.model.state.latest_id == self.server.latest_id
        outboxes = [stream.outbox for link in self.links for stream in link.streams()]
        most = self.server.limits.devices_per_fleet_max
        assert all(len(one.devices) <= most for one in outboxes)
        objects = self.model.oracle_objects()
        for link in self.links:
            for device in link.devices.values() if link.stream is not None else ():
                self._compare_names(device)
                for subscription in device.session.subscriptions.values():
                    self._compare(device, subscription, objects)

    def _compare_names(self, device: Device) -> None:
        """Compare what a device has, and what it asked for last by name, with what the server has."""
        if device.is_refused:
            return
        self.seen["changes held back"] += device.held_back
        device.held_back = 0
        held = device.session.subscriptions
        ended = device.session.registry.ended_ids  # which the server could not write, perhaps
        listed = self.server.subscriptions_of(device.id)
        listed = {number: one for number, one in listed.items() if number not in ended}
        assert {number: (one.spec, one.name) for number, one in held.items()} == listed
        assert all(one.id == number and one.change is None for number, one in held.items())
        named = {one.name: one.spec for one in held.values() if one.name}
        assert len(named) == sum(bool(one.name) for one in held.values())
        if not device.has_been_refused:
            self.seen["names compared"] += len(device.requested)
            assert named == named | device.requested

    def _compare(
        self, device: Device, subscription: Subscription, objects: list[oracle.OracleObject]
    ) -> None:
        spec = subscription.spec
        if isinstance(spec, Boolean):
            self._compare_range(device, subscription, objects)
            return
        self.seen[f"lists compared, {spec.region.name}"] += 1
        self.seen["lists compared, with a scale of their own"] += spec.distance_scale_m is not None
        if device.is_vague and subscription.state is SubscriptionState.TOO_VAGUE:
            self.seen["lists too vague"] += 1
            self.seen["lists that wait for a position"] += device.waits_for_position(subscription)
            return
        assert not device.waits_for_position(subscription)
        assert subscription.state is SubscriptionState.EXACT
        table = self.tables[subscription.idf_generation]
        wanted = oracle_subscription(spec)._replace(window=self._window(spec), weights=table.weight)
        if spec.similarity is Similarity.TFIDF and subscription.idf_generation:
            self.seen["lists compared, with weights"] += 1
        place = (device.lon, device.lat)
        expected = oracle.top_k(wanted, *place, PLANE.maxdist_m, objects, self.model.now_ms)
        found = subscription.results()
        assert [match.object.id for match in found] == [match.object_id for match in expected]
        for match, best in zip(found, expected, strict=True):
            assert match.score == oracle.score(wanted, best.length_m, PLANE.maxdist_m)
            place = (device.lon, device.lat, match.object.lon, match.object.lat)
            assert match.distance_m == ground_distance_m(*place)

    def _window(self, spec: Spec) -> oracle.OracleWindow:
        """Return which objects count."""
        if spec.window is not None:
            self.seen["lists compared, with a window"] += 1
        return oracle_window(spec, self.model.state.latest_id)

    def _compare_range(
        self, device: Device, subscription: Subscription, objects: list[oracle.OracleObject]
    ) -> None:
        """Compare a list that has everything, or as much of it as the server sends."""
        spec, state = subscription.spec, subscription.state
        self.seen[f"ranges compared, {state.name}"] += 1
        wanted = oracle_range(spec, PLANE)._replace(window=self._window(spec))
        now_ms, limits = self.model.now_ms, self.server.limits
        matching = oracle.matching(wanted, device.lon, device.lat, objects, now_ms)
        expected = [one.object_id for one in matching]
        found = [match.object.id for match in subscription.results()]
        if state is SubscriptionState.EXACT:
            assert found == expected
            return
        assert set(found) <= set(expected)
        if state is SubscriptionState.TOO_VAGUE:
            assert device.is_vague
            return
        assert state is SubscriptionState.TOO_MANY
        # Where the server evaluated it there were too many, and are until a tenth of them are gone.
        anchor = subscription.region.anchor
        margin_m = limits.margin_m_max if device.is_vague else 0.0
        if spec.moving:
            wanted = wanted._replace(range=_grown(wanted.range, margin_m))
        there = oracle.matching(wanted, *anchor, objects, now_ms)
        assert len(there) >= 0.9 * limits.matches_max
        assert device.is_vague or len(subscription.region.buffer) <= limits.matches_max
