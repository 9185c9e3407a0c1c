"""Subscriptions that another SDK made: of kinds that this one does not know. They are left alone."""

from __future__ import annotations

import math

import pytest

from nearcast import SubscriptionState, TopK
from nearcast.errors import ClosedError
from nearcast.v1 import device_service_pb2, errors_pb2, geometry_pb2, subscriptions_pb2
from tests.sdk.channel import Channel

SUSHI = TopK({"sushi"}, k=2, alpha=0.5)
TOP_K = subscriptions_pb2.TopK(keywords=["sushi"], k=2, alpha=0.5)

Spec = subscriptions_pb2.SubscriptionSpec
UNKNOWN = {
    "boolean": Spec(boolean=subscriptions_pb2.Boolean(clauses=[{"required": ["tea"]}], moving=True)),
    "with a later window": Spec(top_k=TOP_K, window=subscriptions_pb2.Window.FromString(bytes((24, 5)))),
    "a later similarity": Spec(
        top_k=subscriptions_pb2.TopK(keywords=["sushi"], k=2, alpha=0.5, similarity=9)
    ),
    "a later mode": Spec(top_k=TOP_K, region=9),
    "a later kind": Spec.FromString(bytes((15 << 3 | 2, 2, 8, 1))),
}


@pytest.fixture(params=UNKNOWN)
def unknown(request):
    return UNKNOWN[request.param]


def a_ball(object_id):
    position = geometry_pb2.Position(lon=14.5, lat=35.5)
    one = {"id": object_id, "position": position, "keywords": ["tea"], "expiry_ms": 10_000}
    return subscriptions_pb2.Entry(object=one)


def test_it_is_left_alone(unknown):
    line = Channel()
    line.welcome({3: unknown})
    assert line.device.subscriptions == {}
    line.delta(3, 1, snapshot=True, add=[a_ball(1)], slack={"slack_m": 5.0})
    assert line.device.is_caught_up
    line.device.move(14.9, 35.9)
    line.delta(3, 2, cause=99, drop=[subscriptions_pb2.Drop(object_id=1, reason=99)])
    line.receive(locate=device_service_pb2.Locate(subscription_ids=[3]))
    assert line.kinds() == ["hello"], "neither ended nor reported for, on no occasion"
    mine = line.device.subscribe(SUSHI)
    assert mine.id > 3
    assert line.kinds() == ["subscribe"]
    line.device.disconnect()
    line.welcome({3: unknown, mine.id: Spec(top_k=TOP_K)}, resumed=True)
    assert list(line.device.subscriptions.values()) == [mine]
    assert line.sent[0].hello.version == 2, "its deltas are acknowledged, or they would come again"
    assert line.kinds() == ["hello"]


def test_one_of_mine_gives_way(unknown):
    """Subscribed before the welcome, or under a number that another instance took meanwhile."""
    line = Channel()
    mine = line.device.subscribe(SUSHI)
    assert mine.id == 1
    line.welcome({1: unknown})
    assert [request.WhichOneof("command") for request in line.sent] == ["hello", "subscribe"]
    assert line.sent[1].subscribe.subscription_id == mine.id == 2
    assert line.device.subscriptions == {2: mine}
    line.delta(1, 1, snapshot=True, add=[a_ball(1)])
    assert mine.state is SubscriptionState.STALE
    line.delta(
        2, 2, snapshot=True, cause=subscriptions_pb2.CAUSE_SUBSCRIBED, reach={"length_m": math.inf}
    )
    assert mine.state is SubscriptionState.EXACT
    assert mine.results() == []


def test_one_under_a_number_that_was_ended_here_is_not_ended(unknown):
    line = Channel()
    line.welcome({})
    mine = line.device.subscribe(SUSHI)
    line.device.disconnect()
    line.device.unsubscribe(mine)
    line.kinds()
    line.welcome({mine.id: unknown})
    assert line.kinds() == ["hello"]
    line.device.disconnect()
    line.welcome({mine.id: unknown})
    assert line.kinds() == ["hello"]


def test_its_end_is_nobodys_concern(unknown):
    line = Channel()
    line.welcome({3: unknown})
    line.receive(unsubscribed=device_service_pb2.Unsubscribed(subscription_id=3))
    refused = errors_pb2.Error(reason=errors_pb2.ERROR_REASON_UNKNOWN_SUBSCRIPTION)
    line.receive(
        rejection=device_service_pb2.Rejection(
            number=3, command=device_service_pb2.Rejection.COMMAND_SUBSCRIBE, error=refused
        )
    )
    assert line.device.error is None
    assert line.device.subscribe(SUSHI).id == 4, "no number is used twice"


def test_an_ended_session_sends_no_hello():
    """Nobody would answer for it, and the server would take it for attached."""
    channel = Channel()
    channel.device.connect()
    assert channel.kinds() == ["hello"]
    channel.device.fail(ClosedError("refused"))
    channel.device.connect()
    assert channel.kinds() == []
