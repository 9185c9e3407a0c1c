"""The table of sessions, against a dictionary: devices come as rows, become sessions, and leave."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from server.counters import Counters
from server.limits import Limits
from server.replication.slot_sessions import SlotSessions
from server.session import Session
from server.session.session_table import Sessions
from server.store.mutations import SubscriptionColumns
from tests.support.amounts import examples

LIMITS = Limits()
DEVICES = tuple(f"d{number}" for number in range(8))


def revived(device_id, handles):
    session = Session(device_id, LIMITS, Counters(), parked=True)
    session.handles.update(handles)
    return session


def park(sessions, devices):
    """Park devices with their handles by subscription."""
    rows = [(name, *pair) for name, pairs in devices.items() for pair in pairs.items()]
    names, numbers, handles = zip(*rows, strict=True)
    count = len(rows)
    columns = SubscriptionColumns(names, np.array(numbers), np.zeros(count), [{}] * count, [""] * count)
    sessions.park(columns, np.array(handles))


def handles_of(sessions):
    return {name: sessions.handles_of(name) for name in sessions}


class Table(RuleBasedStateMachine):
    """Devices come as rows and leave; the table has those of the model."""

    devices = st.sampled_from(DEVICES)

    @initialize(table=st.sampled_from((Sessions, SlotSessions)))
    def begin(self, table):
        self.sessions = table(revived)
        self.model = {}
        self.made = set()
        self.handle = 0

    @rule(counts=st.dictionaries(devices, st.integers(1, 4), min_size=1))
    def park(self, counts):
        new = {}
        for name in counts.keys() - self.model.keys():
            new[name] = {number: self.handle + number for number in range(1, counts[name] + 1)}
            self.handle += counts[name]
        if new:
            park(self.sessions, new)
            self.model.update(new)

    @rule(device=devices)
    def access(self, device):
        if device in self.model:
            assert self.sessions[device].handles == self.model[device]
            self.made.add(device)
        else:
            with pytest.raises(KeyError):
                self.sessions[device]

    @rule(device=devices)
    def replace(self, device):
        self.handle += 1
        self.model[device] = {1: self.handle}
        self.sessions[device] = revived(device, self.model[device])
        self.made.add(device)

    @rule(device=devices)
    def delete(self, device):
        if device in self.model:
            del self.sessions[device], self.model[device]
            self.made.discard(device)
        else:
            with pytest.raises(KeyError):
                del self.sessions[device]
        assert device not in self.sessions

    @invariant()
    def agree(self):
        assert handles_of(self.sessions) == self.model
        assert len(self.sessions) == len(self.model)
        assert {one.device_id for one in self.sessions.made()} == self.made


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)


def test_devices_that_come_and_go_beside_a_parked_one_take_no_memory_for_ever():
    sessions = Sessions(revived)
    park(sessions, {"stays": {1: 1, 2: 2}})
    numbers = range(1, 101)

    def come_and_go(times):
        for _ in range(times):
            park(sessions, {"comes": dict(zip(numbers, numbers, strict=True))})
            del sessions["comes"]
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before_bytes = come_and_go(20)
        assert come_and_go(200) < before_bytes + 16 * 100 * 20, "no more than a tenth of the rows"
    finally:
        tracemalloc.stop()
    assert handles_of(sessions) == {"stays": {1: 1, 2: 2}}


def test_rows_of_a_device_may_come_in_two_parts():
    """The slices of a store end anywhere."""
    sessions = Sessions(revived)
    park(sessions, {"a": {1: 1}, "b": {1: 2, 2: 3}})
    park(sessions, {"b": {5: 4}, "c": {7: 5}})
    assert handles_of(sessions) == {"a": {1: 1}, "b": {1: 2, 2: 3, 5: 4}, "c": {7: 5}}
    assert sessions["b"].handles == {1: 2, 2: 3, 5: 4}
