"""Leases: who says nothing for too long is found, without looking at everybody."""

from __future__ import annotations

import random

from server.limits import Limits
from server.session import Outbox, Session
from server.session.leases import Leases

LEASE_MS = 100


def attached(leases, number, now_ms=0):
    session = Session(f"d{number}", Limits())
    session.attach(Outbox(), b"n", 0, 0)
    leases.begin(session, now_ms)
    return session


def test_a_lease_ends_after_its_length():
    leases = Leases(LEASE_MS)
    session = attached(leases, 1, 5)
    assert leases.expired(104) == []
    assert leases.expired(105) == [session]
    assert len(leases) == 0


def test_messages_of_a_device_renew_it():
    leases = Leases(LEASE_MS)
    session = attached(leases, 1)
    session.last_seen_ms = 60
    assert leases.expired(159) == []
    assert leases.expired(160) == [session]


def test_without_a_lease_nothing_is_kept():
    leases = Leases(0)
    attached(leases, 1)
    assert len(leases) == 0
    assert leases.expired(2**60) == []


def test_a_removed_device_is_forgotten_and_a_reconnected_one_has_one_entry():
    leases = Leases(LEASE_MS)
    session = attached(leases, 1)
    session.detach()
    session.attach(Outbox(), b"n", 0, 0)
    leases.begin(session, 50)
    assert len(leases) == 1
    assert leases.expired(100) == []
    session.detach()
    assert leases.expired(1_000) == []
    assert len(leases) == 0


def test_random_devices_against_the_definition():
    chance = random.Random(1)
    leases = Leases(LEASE_MS)
    sessions = [attached(leases, number) for number in range(50)]
    looks = 0
    for now_ms in range(1, 3_000):
        for session in chance.sample(sessions, 3):
            if session.outbox is not None:
                session.last_seen_ms = now_ms
            elif chance.random() < 0.1:
                session.attach(Outbox(), b"n", 0, 0)
                leases.begin(session, now_ms)
        expected = {
            session.device_id
            for session in sessions
            if session.outbox is not None and now_ms - session.last_seen_ms >= LEASE_MS
        }
        before = leases.pushed_count
        found = leases.expired(now_ms)
        looks += leases.pushed_count - before + len(found)
        assert {session.device_id for session in found} == expected
        for session in found:
            session.detach()
        assert len(leases) == sum(session.outbox is not None for session in sessions)
    # At most one look a device and lease, and one at its beginning.
    assert looks <= 50 * (3_000 // LEASE_MS + 1) + leases.pushed_count // 2
