"""Which instance of a device may have it, and what the other one is told."""

from __future__ import annotations

import pytest

from identity.principal import ANYBODY, Principal, Role
from identity.rules import is_own_device
from nearcast.errors import Reason, RefusedError
from server.assembly.parts import limits_of
from server.limits import KEEPALIVE_MS, Limits, dead_connection_ms
from server.session import Detached, Outbox, Session
from server.session.instances import require_instance
from server.settings import load_settings

LIMITS = Limits()
OLD, NEW, THIRD = b"old", b"new", b"third"


def attached(nonce=OLD, now_ms=0, session=None):
    session = session or Session("d", LIMITS)
    session.attach(Outbox(), nonce, 0, 0, now_ms)
    session.last_seen_ms = now_ms
    return session


def refused(session, nonce, now_ms, *, may_take_over=False, lease_ms=0):
    """Return why an instance may not be attached; None if it may."""
    found = None
    try:
        require_instance(
            session,
            nonce,
            "d",
            may_take_over=may_take_over,
            now_ms=now_ms,
            limits=LIMITS,
            lease_ms=lease_ms,
        )
    except RefusedError as error:
        found = error
    if found is not None:
        assert found.reason is Reason.DEVICE_IN_USE
        assert found.field == "hello.device_id"
        assert nonce.hex() not in str(found)
    return found


def test_another_instance_waits_until_one_that_has_vanished_is_noticed():
    session = attached(now_ms=1_000)
    error = refused(session, NEW, 31_000)
    assert error.retry_after_ms == LIMITS.dead_connection_ms == 250_000
    assert "last seen 30.0 s ago" in str(error)
    assert "within 250.0 s" in str(error)
    # A lease that ends before that is noticed first.
    assert refused(session, NEW, 31_000, lease_ms=40_000).retry_after_ms == 10_000
    assert refused(session, NEW, 31_000, lease_ms=600_000).retry_after_ms == 250_000
    # A lease that has ended is carried out in a moment.
    assert refused(session, NEW, 50_000, lease_ms=40_000).retry_after_ms == 1
    assert refused(session, OLD, 31_000) is None, "the same one resumes"
    session.detach()
    assert refused(session, NEW, 31_000) is None


def test_one_that_took_over_cannot_be_replaced_at_once():
    """Two that both insist: each stays for a while."""
    session = attached(now_ms=0)
    assert refused(session, NEW, 5_000, may_take_over=True) is None, "the first replaced no other"
    attached(NEW, 5_000, session)
    error = refused(session, OLD, 8_000, may_take_over=True)
    assert error.retry_after_ms == 7_000
    assert "took over 3.0 s ago" in str(error)
    assert "in 7.0 s" in str(error)
    attached(NEW, 9_000, session)  # it resumes: that is no reason to stay longer
    assert refused(session, OLD, 14_999, may_take_over=True).retry_after_ms == 1
    assert refused(session, OLD, 15_000, may_take_over=True) is None
    attached(OLD, 15_000, session)
    assert refused(session, NEW, 15_001, may_take_over=True).retry_after_ms == 19_999, "twice as long"
    # One that comes when nobody is there replaces nobody.
    session.detach()
    attached(THIRD, 15_002, session)
    assert refused(session, NEW, 15_003, may_take_over=True) is None


def test_two_that_both_insist_take_over_less_and_less_often():
    session, now_ms, stays_ms = attached(now_ms=0), 0, []
    for nonce in (NEW, OLD) * 8:
        attached(nonce, now_ms, session)
        stays_ms.append(refused(session, THIRD, now_ms, may_take_over=True).retry_after_ms)
        now_ms += stays_ms[-1]
    assert stays_ms[:4] == [10_000, 20_000, 40_000, 80_000]
    assert max(stays_ms) == stays_ms[-1] == LIMITS.take_over_ms_max
    attached(THIRD, now_ms + stays_ms[-1], session)  # long after it might have been replaced
    assert refused(session, OLD, now_ms + stays_ms[-1], may_take_over=True).retry_after_ms == 10_000


def test_a_replaced_instance_is_notified():
    session = attached()
    outbox = session.outbox
    attached(NEW, 1, session)
    last = outbox.pop().event
    assert isinstance(last, Detached)
    assert last.error.reason is Reason.SUPERSEDED
    assert "another instance of the device took over" in str(last.error)
    assert not outbox.devices
    assert session.is_attached


def test_only_a_token_of_this_very_device_takes_over_by_itself():
    def who(device_id, *roles, tenant=""):
        return Principal(device_id, frozenset(roles), tenant)

    assert is_own_device(who("d", Role.DEVICE), "d")
    assert not is_own_device(who("d", Role.DEVICE), "other")
    assert not is_own_device(who("d", Role.GATEWAY), "d")
    assert not is_own_device(ANYBODY, "d")
    assert not is_own_device(ANYBODY, "")
    of_tenant = who("d", Role.DEVICE, tenant="t")
    assert is_own_device(of_tenant, of_tenant.qualified("d"))
    assert not is_own_device(of_tenant, "d")


@pytest.mark.parametrize(("keepalive_ms", "dead_ms"), [(1_000, 2_000), (30_000, 40_000)])
def test_when_a_dead_connection_is_noticed_follows_from_the_keepalive(keepalive_ms, dead_ms):
    flags = {"area": "14,35,15,36", "keepalive_ms": keepalive_ms}
    assert limits_of(load_settings(flags)).dead_connection_ms == dead_ms
    assert Limits().dead_connection_ms == dead_connection_ms(KEEPALIVE_MS)
