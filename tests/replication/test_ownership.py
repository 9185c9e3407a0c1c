"""Ownership of slots: nodes over keys that some cannot reach, or do not learn the outcome of a write.

At no time are writes of two owners of a slot accepted. No owner misses a write that was acknowledged.
When all is well again, every slot has the one owner that all prefer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from cluster.keys import Fence
from cluster.log import LogConflictError
from cluster.ownership import MISSED_MAX, PORTION, Lease, Node, NodeState, Owned, Ownership
from cluster.records import (
    encoded_lease,
    encoded_owner,
    lease_from,
    node_key,
    owner_from,
    owner_key,
    slot_of_owner,
)
from cluster.slots import SLOTS, preferred, slot_of
from tests.replication.memory_keys import MemoryKeys

COUNT = 5
"""Slots of the state machine."""


def run(coroutine):
    return asyncio.run(coroutine)


class Member:
    """A node of the machine: it reads and writes the keys, unless it is cut off."""

    def __init__(self, keys, address, number):
        self.keys = keys
        self.node = Node(address, b"%d" % number)
        self.ownership = Ownership(self.node, COUNT)
        self.state = NodeState.READY
        self.position = 0
        self.lease_sequence = keys.latest(node_key(address)).sequence
        self.rows = {}  # by slot: the rows that it has loaded and written
        self.under_way = []  # slot, owner, expected sequence
        self.is_cut = self.has_ended = False

    def renew(self):
        if self.is_cut or self.has_ended:
            return
        value = encoded_lease(Lease(self.node, self.state))
        try:
            self.lease_sequence = run(
                self.keys.put(node_key(self.node.address), value, self.lease_sequence)
            )
        except LogConflictError:
            self.has_ended = True

    def read(self, most=10**9):
        """Read further records; those that were replaced meanwhile are gone, as in a stream of keys."""
        for record in self.keys.history[self.position :][: 0 if self.is_cut else most]:
            self.position += 1
            if self.keys.latest(record.key) is not record:
                continue
            slot = slot_of_owner(record.key)
            if slot is not None:
                owned = Owned(owner_from(record.value), record.sequence)
                self.ownership.read_owner(slot, owned)
            elif record.key.startswith("node."):
                self.ownership.read_lease(lease_from(record.value))

    def begin(self):
        """Begin what is to do: its writes are under way. Slots to release are served until then."""
        if self.has_ended:
            return
        steps = self.ownership.steps()
        for slot in steps.lost:
            del self.rows[slot]
        for slot, expected in steps.release.items():
            self.under_way.append((slot, None, expected))
        for slot, expected in steps.take.items():
            self.under_way.append((slot, self.node, expected))

    def finish(self, *, is_answered=True):
        """Let the writes arrive; unless they are answered, the outcome of each is unknown."""
        for slot, node, expected in self.under_way:
            self._write(slot, node, expected, is_answered=is_answered)
        self.under_way.clear()

    def _write(self, slot, node, expected, *, is_answered):
        if node is None:
            self.rows.pop(slot, None)  # whatever the outcome
        if self.is_cut:
            self.ownership.failed(slot)
            return
        try:
            sequence = run(self.keys.put(owner_key(slot), encoded_owner(node), expected))
        except LogConflictError:
            self.ownership.refused(slot, expected)
            return
        if not is_answered:
            self.ownership.failed(slot)
        elif node is None:
            self.ownership.released(slot)
        else:
            self.rows[slot] = self._loaded(slot, sequence)
            self.ownership.took(slot, sequence)

    def _loaded(self, slot, sequence):
        found = run(self.keys.read([f"slot.{slot}.>"], sequence))
        return {one.key for one in found if one.key != owner_key(slot)}


class Nodes(RuleBasedStateMachine):
    """Three nodes, one of which may be cut off, restarted or drained at any time."""

    members = Bundle("members")

    @initialize()
    def begin(self):
        self.keys = MemoryKeys()
        self.numbers = count(1)
        self.written = count(1)
        self.acknowledged = {slot: set() for slot in range(COUNT)}
        self.uncertain = set()
        self.of = {name: Member(self.keys, name, next(self.numbers)) for name in ("a:1", "b:1", "c:1")}

    names = st.sampled_from(["a:1", "b:1", "c:1"])

    @rule(name=names)
    def renew(self, name):
        self.of[name].renew()

    @rule(name=names, most=st.integers(1, 12))
    def read(self, name, most):
        self.of[name].read(most)

    @rule(name=names)
    def begin_steps(self, name):
        self.of[name].begin()

    @rule(name=names, is_answered=st.booleans())
    def finish_steps(self, name, is_answered):
        self.of[name].finish(is_answered=is_answered)

    @rule(name=names)
    def go_on(self, name):
        """Let everything of a node happen, often enough that others may expire."""
        for _ in range(MISSED_MAX + 1):
            self.of[name].renew()
            self.of[name].read()
            self.of[name].begin()
            self.of[name].finish()

    @rule(name=names, slot=st.integers(0, COUNT - 1), is_answered=st.booleans())
    def write(self, name, slot, is_answered):
        member = self.of[name]
        sequence = member.ownership.held().get(slot)
        if sequence is None or member.is_cut or member.has_ended:
            return
        key = f"slot.{slot}.device.x.{next(self.written)}"
        try:
            run(self.keys.put_all({key: b"x"}, Fence(owner_key(slot), sequence)))
        except LogConflictError:
            return
        owner = owner_from(self.keys.latest(owner_key(slot)).value)
        assert owner == member.node, "a write of another node than the owner was accepted"
        self.require_rows(member, slot)
        if is_answered:
            member.rows[slot].add(key)
            self.acknowledged[slot].add(key)
        else:  # the node reads the slot again
            self.uncertain.add(key)
            del member.rows[slot]
            member.ownership.failed(slot)

    def require_rows(self, member, slot):
        rows = member.rows[slot]
        assert rows >= self.acknowledged[slot], "the owner has missed a write"
        assert rows <= self.acknowledged[slot] | self.uncertain

    @rule(name=names)
    def cut(self, name):
        self.of[name].is_cut = True

    @rule(name=names)
    def heal(self, name):
        self.of[name].is_cut = False

    @rule(name=names)
    def drain(self, name):
        self.of[name].state = NodeState.DRAINING

    @rule(name=names)
    def restart(self, name):
        self.of[name] = Member(self.keys, name, next(self.numbers))

    @invariant()
    def consistent(self):
        for member in getattr(self, "of", {}).values():
            member.ownership.check()
            assert member.rows.keys() == member.ownership.held().keys()

    def teardown(self):
        if not hasattr(self, "of"):
            return
        for name, member in self.of.items():
            member.is_cut = False
            if member.has_ended or member.state is not NodeState.READY:
                self.of[name] = Member(self.keys, name, next(self.numbers))
        for _ in range(4 * MISSED_MAX):
            for member in self.of.values():
                member.renew()
                member.read()
                member.begin()
                member.finish()
        holders = {slot: [] for slot in range(COUNT)}
        for name, member in self.of.items():
            assert not member.has_ended
            for slot, sequence in member.ownership.held().items():
                holders[slot].append(name)
                assert sequence == self.keys.latest(owner_key(slot)).sequence
                self.require_rows(member, slot)
        assert holders == {slot: [preferred(slot, list(self.of))] for slot in range(COUNT)}


TestNodes = Nodes.TestCase
TestNodes.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, print_blob=True)


def test_slots_are_spread_evenly_and_few_move():
    three, four = ["a:1", "b:1", "c:1"], ["a:1", "b:1", "c:1", "d:1"]
    before = [preferred(slot, three) for slot in range(SLOTS)]
    after = [preferred(slot, four) for slot in range(SLOTS)]
    assert all(250 < number < 450 for number in Counter(before).values())
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"d:1"}
    assert 180 < len(moved) < 330
    assert preferred(3, []) == ""
    assert 0 <= slot_of("acme/one") < SLOTS
    devices = Counter(slot_of(f"device-{i}") for i in range(50_000))
    assert len(devices) == SLOTS
    assert max(devices.values()) < 100


def test_slots_move_in_portions():
    keys = MemoryKeys()
    ownership = Ownership(Node("a:1", b"1"))
    lease = Lease(Node("a:1", b"1"), NodeState.READY)
    ownership.read_lease(lease)
    steps = ownership.steps()
    assert len(steps.take) == SLOTS
    for slot in steps.take:
        sequence = run(keys.put(owner_key(slot), b"x", 0))
        ownership.took(slot, sequence)
        ownership.read_owner(slot, Owned(lease.node, sequence))
    assert ownership.steps() == ({}, {}, ())
    other = Lease(Node("b:1", b"2"), NodeState.READY)
    follower = Ownership(other.node)
    for one in (lease, other):
        follower.read_lease(one)
    for slot in range(SLOTS):
        follower.read_owner(slot, Owned(lease.node, 1 + slot))
    assert not follower.steps().take, "their owner is there"
    ownership.read_lease(other)
    steps = ownership.steps()
    assert len(steps.release) == PORTION
    assert not steps.take
    assert all(preferred(slot, ["a:1", "b:1"]) == "b:1" for slot in steps.release)
    for slot in steps.release:
        ownership.released(slot)
        ownership.read_owner(slot, Owned(None, 5_000 + slot))
    first, *rest = steps.release
    follower.read_owner(first, Owned(None, 5_000 + first))
    assert follower.steps().take == {first: 5_000 + first}
    for slot in rest:
        follower.read_owner(slot, Owned(None, 5_000 + slot))
    assert not follower.steps().take, "those are taken together, after the first one"
    follower.took(first, 9_000 + first)
    assert follower.steps().take == {slot: 5_000 + slot for slot in rest}
    for slot in rest:
        ownership.read_owner(slot, Owned(other.node, 9_000 + slot))
        assert not ownership.steps().release, "all have to arrive first"
    ownership.read_owner(first, Owned(other.node, 9_000 + first))
    assert len(ownership.steps().release) == PORTION


def test_a_node_is_gone_by_the_renewals_of_this_one_only():
    ownership = Ownership(Node("a:1", b"1"), COUNT)
    own, other = (Lease(Node(name, b"1"), NodeState.READY) for name in ("a:1", "b:1"))
    ownership.read_lease(other)
    doubts = []
    for _ in range(MISSED_MAX - 1):
        ownership.read_lease(own)
        doubts.append(ownership.is_doubtful(other.node))
    assert doubts == [False, True, True]
    assert ownership.ready() == {"a:1", "b:1"}
    ownership.read_lease(own)
    assert ownership.ready() == {"a:1"}
    ownership.read_lease(other)
    assert ownership.ready() == {"a:1", "b:1"}
    assert not ownership.is_doubtful(other.node)
    ownership.read_lease(Lease(Node("b:1", b"2"), NodeState.JOINING))
    assert ownership.ready() == {"a:1"}
    assert [lease.state for lease in ownership.leases()] == [NodeState.READY, NodeState.JOINING]
    assert not ownership.is_there(other.node)
    ownership.read_end("b:1")
    assert [lease.node.address for lease in ownership.leases()] == ["a:1"]


def test_a_node_that_has_just_started_takes_no_slot_of_one_whose_lease_it_has_not_read():
    ownership = Ownership(Node("a:1", b"1"), COUNT)
    own, other = (Lease(Node(name, b"1"), NodeState.READY) for name in ("a:1", "b:1"))
    for slot in range(COUNT):
        ownership.read_owner(slot, Owned(other.node, 1 + slot))
    for _ in range(MISSED_MAX - 1):
        ownership.read_lease(own)
        assert not ownership.steps().take
    ownership.read_lease(own)
    assert len(ownership.steps().take) == COUNT


def test_the_first_node_by_address_that_has_the_source_reads_it():
    ownership = Ownership(Node("b:1", b"1"), COUNT)

    def read(name, state=NodeState.READY, *, has_source=True):
        lease = Lease(Node(name, b"1"), state, has_source=has_source)
        ownership.read_lease(lease_from(encoded_lease(lease)))

    def reader():
        node = ownership.source_node()
        return None if node is None else node.address

    for _ in range(MISSED_MAX - 1):
        read("b:1")
        assert reader() is None, "another one may be there"
    read("b:1")
    assert reader() == "b:1"
    read("a:1", has_source=False)
    assert reader() == "b:1"
    read("a:1", NodeState.JOINING)
    assert reader() == "b:1"
    read("a:1")
    read("c:1")
    assert reader() == "a:1"
    read("a:1", NodeState.DRAINING)
    assert reader() == "b:1"
    read("a:1")
    for _ in range(MISSED_MAX):
        read("b:1")
    assert reader() == "b:1", "the other one is gone"
    read("b:1", NodeState.DRAINING)
    read("c:1", has_source=False)
    assert reader() is None
