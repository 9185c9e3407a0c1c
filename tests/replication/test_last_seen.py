"""Retention in a cluster: records of when devices were last seen, against a model of the exact times."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from cluster.key_registry import KeyRegistry
from cluster.ownership import Node
from cluster.records import device_key, seen_from
from cluster.registry import SEEN, LastSeen, StoredSubscription
from cluster.slots import slot_of
from server.replication.last_seen import CHECK_MS_MAX, STEPS, LastSeenTimes
from tests.replication.memory_keys import MemoryKeys
from tests.support.amounts import examples

RETENTION_MS = 800
START_MS = 1_700_000_000_000
DEVICES = tuple(f"d{number}" for number in range(5))
SLOTS = tuple(sorted(map(slot_of, DEVICES)))
STORED = {name: StoredSubscription(name, 1, 1, "{}") for name in DEVICES}


def run(coroutine):
    return asyncio.run(coroutine)


class Owner:
    """A node with its slots: what it knows, and what it writes."""

    def __init__(self, registry, name) -> None:
        self._registry = registry
        self._node = Node(name, b"1")
        self.times = LastSeenTimes(RETENTION_MS)
        self.sequences = {}

    def take(self, slot, sequence, now_ms):
        self.sequences[slot] = run(self._registry.set_owner(slot, self._node, sequence))
        found = run(self._registry.read([slot], self.sequences[slot]))
        devices = {one.device_id for one in found.subscriptions}
        self.times.take(slot, found.seen, devices, now_ms)
        return self.sequences[slot], devices

    def drop(self, slot):
        del self.sequences[slot]
        self.times.drop(slot)

    def write(self, changes, held, now_ms):
        completed = self.times.completed(changes, held, now_ms)
        for slot, some in completed.items():
            run(self._registry.write(slot, some, self.sequences[slot]))
            self.times.wrote(slot, some)

    def commit(self, now_ms):
        """Write what is pending, as with every commit."""
        changes, held = {}, {}
        for name in self.times.pending(100):
            changes.setdefault(slot_of(name), {})[name, SEEN] = LastSeen(name, now_ms)
            held[name] = [1]
        self.write(changes, held, now_ms)


class Retention(RuleBasedStateMachine):
    """Devices and nodes come and go: no device is forgotten too early, or never."""

    devices = st.sampled_from(DEVICES)
    slots = st.sampled_from(SLOTS)

    @initialize()
    def begin(self):
        self.keys = MemoryKeys()
        registry = KeyRegistry(self.keys)
        self.nodes = [Owner(registry, "a:1"), Owner(registry, "b:1")]
        self.now_ms = START_MS
        self.owner = {}
        self.attached, self.seen_ms, self.uncommitted = set(), {}, {}
        for slot in set(SLOTS):
            self._take(slot, self.nodes[0], 0)
        for name in DEVICES:
            self._subscribe(name)

    def _take(self, slot, node, sequence):
        self.owner[slot] = node
        _, devices = node.take(slot, sequence, self.now_ms)
        assert devices == {name for name in self.seen_ms if slot_of(name) == slot}

    def _subscribe(self, name):
        """Subscribe, unless the device has a subscription; it is attached."""
        node = self.owner[slot_of(name)]
        if name not in self.seen_ms:
            node.write({slot_of(name): {(name, 1): STORED[name]}}, {}, self.now_ms)
            self.seen_ms[name] = self.now_ms
        self.attached.add(name)

    def _see(self, name):
        self.owner[slot_of(name)].times.note(name, self.now_ms)
        self.uncommitted[name] = self.now_ms

    def _commit(self):
        for node in self.nodes:
            node.commit(self.now_ms)
        self.seen_ms.update(self.uncommitted)
        self.uncommitted.clear()

    @rule(device=devices)
    def attach(self, device):
        self._subscribe(device)
        self._see(device)

    @rule(device=devices)
    def detach(self, device):
        if device in self.attached:
            self._see(device)
            self.attached.discard(device)

    @rule()
    def commit(self):
        self._commit()

    @rule(count=st.sampled_from((1, 1, 3, 9, 30)), late_ms=st.integers(0, 99))
    def pass_time(self, count, late_ms):
        """Let time pass, with a check as often as nodes look."""
        for _ in range(count):
            self.now_ms += min(self.nodes[0].times.check_ms, CHECK_MS_MAX) - late_ms % 50
            self._check()

    def _check(self):
        for name in self.attached:
            self._see(name)
        self._commit()
        for node in self.nodes:
            for name in node.times.overdue(self.now_ms, 100):
                assert self.now_ms >= self.seen_ms[name] + RETENTION_MS, "too early"
                slot = slot_of(name)
                node.write({slot: {(name, 1): None}}, {name: [1]}, self.now_ms)
                del self.seen_ms[name]
                assert not self.keys.latest(device_key(name, SEEN)).value
        step_ms, check_ms = self.nodes[0].times.step_ms, self.nodes[0].times.check_ms
        oldest_ms = self.now_ms - RETENTION_MS - step_ms - 3 * check_ms
        assert all(seen_ms >= oldest_ms for seen_ms in self.seen_ms.values()), "never"

    @rule(slot=slots, is_killed=st.booleans())
    def take_over(self, slot, is_killed):
        """Let the other node take a slot; what a node has not written is lost if it is killed."""
        before = self.owner[slot]
        of_slot = {name for name in DEVICES if slot_of(name) == slot}
        if is_killed:
            lost = of_slot & self.uncommitted.keys()
            for name in lost:
                del self.uncommitted[name]
        else:
            self._commit()
        sequence = before.sequences[slot]
        before.drop(slot)
        self._take(slot, self.nodes[before is self.nodes[0]], sequence)
        for name in of_slot & self.attached:  # it says hello
            self._see(name)

    def teardown(self):
        """Records of a device are a step apart, but for that of its first subscription."""
        written = {}
        for record in getattr(self, "keys", MemoryKeys()).history:
            for name in DEVICES:
                if record.key == device_key(name, SEEN):
                    written.setdefault(name, []).append(record.value)
        for name, values in written.items():
            times = [_time_of(value) for value in values]
            for before, after in pairwise(times):
                if before is not None and after is not None:
                    assert after >= before + RETENTION_MS // STEPS, name


def _time_of(value):
    return seen_from(value).time_ms if value else None


TestRetention = Retention.TestCase
TestRetention.settings = settings(
    max_examples=examples(80), stateful_step_count=40, deadline=None, print_blob=True
)


def test_a_device_of_an_older_version_counts_as_seen_when_its_slot_is_taken():
    times = LastSeenTimes(RETENTION_MS)
    times.take(7, [LastSeen("a", START_MS - 300)], ["a", "b"], START_MS)
    times.take(slot_of("d0"), [], ["d0"], START_MS)
    assert times.pending(9) == ["b", "d0"]
    assert times.time_of("d0") == START_MS
    completed = times.completed(
        {slot_of("d0"): {("d0", SEEN): LastSeen("d0", START_MS)}}, {"d0": [1]}, START_MS
    )
    times.wrote(slot_of("d0"), completed[slot_of("d0")])
    assert times.pending(9) == ["b"]


def test_without_a_limit_nothing_is_recorded():
    times = LastSeenTimes(0)
    times.take(7, [], ["a"], START_MS)
    changes = {7: {("a", 1): StoredSubscription("a", 1, 1, "{}")}}
    assert times.completed(changes, {}, START_MS) == changes
    assert not times.pending(9)
    assert not times.overdue(START_MS * 2, 9)
