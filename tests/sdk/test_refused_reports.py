"""Reports that the server refuses, and those that it would refuse: no subscription is lost by them."""

from __future__ import annotations

import math

from nearcast import SubscriptionState
from nearcast.model import RegionMode, TopK
from nearcast.protocol.specs import spec_message
from nearcast.v1 import device_service_pb2, errors_pb2, geometry_pb2, subscriptions_pb2
from tests.sdk.channel import Channel

SUSHI = TopK({"sushi"}, k=2, alpha=0.5)
TEA = TopK({"tea"}, k=2, alpha=0.5)
STATIONARY = TopK({"tea"}, k=2, alpha=0.5, region=RegionMode.STATIONARY)
HERE = {"anchor": geometry_pb2.Point(), "reach": {"length_m": 1.0, "object_id": 9}}
"""A bound that leaves the device little room."""


def refuse_report(line, number):
    error = errors_pb2.Error(reason=errors_pb2.ERROR_REASON_UNKNOWN_SUBSCRIPTION, code=5)
    command = device_service_pb2.Rejection.COMMAND_REPORT
    line.receive(rejection=device_service_pb2.Rejection(number=number, command=command, error=error))


def test_subscriptions_of_a_refused_report_are_requested_again():
    line = Channel()
    line.welcome({1: spec_message(SUSHI)})
    line.delta(1, 1, snapshot=True, **HERE)
    line.device.move(14.9, 35.9)
    assert line.kinds() == ["hello", "report"]
    refuse_report(line, 1)
    assert line.kinds() == ["subscribe"]


def test_a_refused_report_leaves_a_change_as_it_is():
    """A disk was full: the server has not begun another one of the report, but has made the change."""
    line = Channel()
    line.welcome({1: spec_message(SUSHI)}, name="mine")
    line.delta(1, 1, snapshot=True, **HERE)
    mine = line.device.subscribe(TEA, "mine")
    line.receive(locate=device_service_pb2.Locate(subscription_ids=[1]))
    assert line.kinds() == ["hello", "report", "subscribe", "ping", "report"]
    line.delta(1, 2, snapshot=True, cause=subscriptions_pb2.CAUSE_RESUMED, reach={"length_m": math.inf})
    refuse_report(line, 2)
    assert line.kinds() == [], "the response to the change is under way"
    line.receive(pong=device_service_pb2.Pong(number=1))
    assert (mine.spec, mine.change, mine.state) == (TEA, None, SubscriptionState.EXACT)


def test_subscriptions_that_need_an_exact_position_are_not_reported_without_one():
    """Another instance made it, and the fix between hello and welcome was a vague one."""
    line = Channel()
    line.device.connect()
    line.device.move(14.6, 35.6, accuracy_m=20.0)
    line.welcome({1: spec_message(STATIONARY), 2: spec_message(SUSHI)})
    line.delta(1, 1, snapshot=True, **HERE)
    line.delta(2, 2, snapshot=True, **HERE)
    line.kinds()
    line.device.move(14.9, 35.9, accuracy_m=20.0)
    mine = line.device.subscriptions[1]
    assert mine.state is SubscriptionState.TOO_VAGUE
    assert math.isinf(mine.fence_m())
    line.receive(locate=device_service_pb2.Locate(subscription_ids=[1]))
    reported = [number for one in line.sent for number in one.report.subscription_ids]
    assert 1 not in reported
    line.device.move(14.9, 35.9)
    assert 1 in line.sent[-1].report.subscription_ids
