"""Ends of subscriptions that the server refuses while it lags: they are sent again, and once."""

from __future__ import annotations

import pytest

from nearcast.model import TopK
from nearcast.protocol.specs import spec_message
from nearcast.v1 import device_service_pb2, errors_pb2
from tests.sdk.channel import Channel

Rejection = device_service_pb2.Rejection
TEA = TopK({"tea"}, k=2, alpha=0.5)
LAGS = device_service_pb2.Lag(offset=41)
CAUGHT_UP = device_service_pb2.Lag()


def refuse(line, number, command=Rejection.COMMAND_UNSUBSCRIBE):
    """Refuse a request, as a server does that lags."""
    error = errors_pb2.Error(reason=errors_pb2.ERROR_REASON_LAGGING, code=14, retry_after_ms=1_000)
    line.receive(rejection=Rejection(number=number, command=command, error=error))


def taken(line):
    """Return the kinds and numbers of what the device has sent."""
    sent = [(one.WhichOneof("command"), one) for one in line.sent]
    line.sent.clear()
    return [(kind, getattr(one, kind).subscription_id) for kind, one in sent]


@pytest.fixture
def line():
    """A device with three subscriptions at a server that lags. It has no lease, so no pong is due."""
    line = Channel()
    line.welcome(dict.fromkeys((1, 2, 3), spec_message(TEA)))
    for number in (1, 2, 3):
        line.delta(number, number, snapshot=True)
    line.receive(lag=LAGS)
    line.sent.clear()
    return line


def test_ends_are_sent_again_in_order_when_the_server_has_caught_up(line):
    device, ended = line.device, []
    for number in (3, 1):
        device.unsubscribe(device.subscriptions[number], lambda number=number: ended.append(number))
    for number in (3, 1):
        refuse(line, number)
    assert (taken(line), ended) == ([("unsubscribe", 3), ("unsubscribe", 1)], [3, 1])
    line.receive(lag=LAGS)
    assert taken(line) == [], "the server still lags"
    line.receive(lag=CAUGHT_UP)
    assert taken(line) == [("unsubscribe", 1), ("unsubscribe", 3)]
    line.receive(unsubscribed=device_service_pb2.Unsubscribed(subscription_id=1))
    refuse(line, 3)  # it lags again
    line.receive(pong=device_service_pb2.Pong(number=9))
    line.receive(lag=CAUGHT_UP)
    assert taken(line) == [("unsubscribe", 3)], "once"


def test_an_end_is_sent_before_a_new_subscription(line):
    """The new one may have the name of the other, or be one too many without its end."""
    device = line.device
    device.unsubscribe(device.subscriptions[2])
    refuse(line, 2)
    new = device.subscribe(TEA, "mine")
    refuse(line, new.id, Rejection.COMMAND_SUBSCRIBE)
    line.sent.clear()
    line.receive(lag=CAUGHT_UP)
    assert taken(line) == [("unsubscribe", 2), ("subscribe", new.id)]
