"""A node that may lag: what its devices show, against a plain model of its lease and of the log.

The node is a coordinator without sockets; its devices are sessions of the SDK. What either side sends is
bytes of the protocol, and arrives at once.
"""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.entries import Caller, Entry, Founding, Publish
from nearcast import Reason, RefusedError, SubscriptionState, TopK
from nearcast.canonical import NewObject
from nearcast.protocol.clock import Clock
from nearcast.protocol.device_session import DeviceSession
from nearcast.protocol.location import Location
from nearcast.v1 import device_service_pb2
from server import command as c
from server.commands.acceptor import Accepted, Acceptor
from server.commands.planner import Planner
from server.commands.validation import checked_report
from server.replication.lag import LagNotice
from server.replication.own_lease import LEASE_S
from server.session import Outbox
from server.transport.converters import device_command_from, report_from
from server.transport.event_encoder import EventEncoder
from tests.replication.local_node import FRAME, LIMITS, LocalNode
from tests.support.amounts import examples

START_MS = 1_700_000_000_000
SHOP = Caller("", "shop", ("publisher",))
DEVICES = ("d0", "d1", "d2")
HELD = (SubscriptionState.EXACT, SubscriptionState.LAGGING)


class Device:
    """A device on a stream to a node."""

    def __init__(self, node, device_id) -> None:
        self._node = node
        self.session = DeviceSession(
            device_id, device_id.encode(), Clock(lambda: 0), self._send, Location(14.5, 35.5, 0.0, 0.0)
        )
        self.outbox = None
        self.errors = []

    def connect(self):
        if self.outbox is not None:
            self._node.execute(c.Detach(self.outbox, self.session.device_id))
            self.session.disconnect()
        self.outbox = Outbox(counters=self._node.coordinator.counters)
        self.session.connect()
        self._node.settle()

    def subscribe(self, k):
        found = self.session.subscribe(TopK({"tea"}, k=k))
        self._node.settle()
        return found

    def _send(self, request):
        message = device_service_pb2.AttachRequest.FromString(request.SerializeToString())
        self._node.inbox.append((self.outbox, self.session.device_id, message))

    @property
    def subscriptions(self):
        return list(self.session.subscriptions.values())


class Node:
    """A node whose time, lease and lag are those of the test."""

    def __init__(self) -> None:
        self._local = LocalNode(":memory:")
        self.coordinator = self._local.coordinator
        self.now_s = self.renewed_s = 0.0
        self.is_behind = False
        self.lost = set()
        self.devices = {}
        self.inbox = deque()
        self.has_sent = set()
        self.lag = self.coordinator.lag = LagNotice(
            self.may_promise,
            lambda: self._local.applier.offset,
            self.coordinator.sessions.made,
            lambda device_id: device_id not in self.lost,
        )
        self._acceptor, self._planner = Acceptor(self.coordinator), Planner(self.coordinator)
        self._encoder = EventEncoder(FRAME, LIMITS, virtual_time=False)
        self.apply(Founding(1, (), (), False))

    def may_promise(self):
        return self.now_s < self.renewed_s + LEASE_S and not self.is_behind

    def apply(self, change):
        applier = self._local.applier
        applier.apply(applier.offset + 1, [Entry(START_MS, change, b"%d" % applier.offset)])
        self.settle()

    def read(self, outbox, device_id, message):
        """Take a message of a device."""
        session = self.coordinator.renew_lease(outbox, device_id)
        if message.HasField("report"):
            report = report_from(outbox, session, device_id, message.report)
            self.execute(checked_report(report, LIMITS))
        else:
            self.execute(device_command_from(outbox, device_id, message))

    def settle(self):
        """Read what devices have sent, and deliver what they get, until there is nothing."""
        self.deliver()
        while self.inbox:
            self.read(*self.inbox.popleft())
            self.deliver()

    def execute(self, command):
        accepted = Accepted()
        try:
            if isinstance(command, c.Subscribe | c.Unsubscribe):
                self._planner.plan_batch([])
                self._planner.plan(command).apply(accepted.evaluation)
            else:
                self._acceptor.accept(command, None, accepted)
        except RefusedError as error:
            self.coordinator.reject(
                command.outbox, command.device_id, *c.rejection_address(command), error
            )
        self._acceptor.finish(accepted)

    def deliver(self):
        """Let devices receive what the node has sent."""
        for device in self.devices.values():
            outbox = device.outbox
            while outbox is not None and len(outbox):
                events = self.coordinator.router.take(outbox, 1_000)
                outbox.wrote()
                for _, event in events:
                    self.has_sent.add(device.session.device_id)
                    response = device_service_pb2.AttachResponse.FromString(self._encoder.response(event))
                    device.session.receive(response)

    def notify(self):
        """Do what the node does ten times a second."""
        self.lag.look()
        self.lag.end()
        self.settle()

    def refused_count(self):
        return self.coordinator.counters.rejected[Reason.LAGGING]

    def offset(self):
        return self._local.applier.offset

    def result(self, k):
        """Return the ids of a result by the definition: all objects are alike but for their place."""
        x_m, y_m = FRAME.project(14.5, 35.5)
        items = self.coordinator.log_objects.all()
        near = sorted(items, key=lambda one: (one.point.x_m - x_m) ** 2 + (one.point.y_m - y_m) ** 2)
        return [one.object_id for one in near[:k]]

    def close(self):
        self._local.close()


class Lagging(RuleBasedStateMachine):
    """Leases end, are renewed, the log stands still: a device that is not current never shows EXACT."""

    devices = st.sampled_from(DEVICES)

    @initialize()
    def begin(self):
        self.node = Node()
        self.number = 0
        for name in DEVICES:
            device = self.node.devices[name] = Device(self.node, name)
            device.connect()
            device.subscribe(2)

    @rule(seconds=st.sampled_from((0.1, 0.7, 1.9, 2.1)))
    def pass_time(self, seconds):
        self.node.now_s += seconds
        self.node.has_sent.clear()

    @rule()
    def renew(self):
        self.node.renewed_s = self.node.now_s

    @rule(is_behind=st.booleans())
    def follow(self, is_behind):
        self.node.is_behind = is_behind
        self.node.has_sent.clear()

    @rule(device=devices)
    def lose(self, device):
        """Another node has taken the slot; the device is not detached yet."""
        self.node.lost.add(device)

    @rule()
    def notify(self):
        self.node.notify()
        if not self.node.may_promise():
            self.node.has_sent.update(DEVICES)

    @rule(place=st.integers(1, 40))
    def publish(self, place):
        self.number += 1
        lon = 14.5 + 0.001 * place + 0.00001 * self.number
        self.node.apply(Publish(SHOP, (NewObject(lon, 35.5, ("tea",), 3_600_000, b"", ""),)))

    @rule(device=devices)
    def move(self, device):
        """Leave the region, so that a report is sent, and return."""
        session = self.node.devices[device].session
        for lon, lat in ((14.9, 35.9), (14.5, 35.5)):
            session.move(lon, lat)
            self.node.settle()

    @rule(device=devices)
    def ping(self, device):
        if self.node.devices[device].session.is_online:
            self.node.devices[device].session.ping(lambda: None)
            self.node.settle()

    @rule(device=devices)
    def reconnect(self, device):
        if device not in self.node.lost:  # it would be refused
            self.node.devices[device].connect()

    @rule(device=devices, k=st.integers(1, 4))
    def subscribe(self, device, k):
        node = self.node
        refused = node.refused_count()
        subscription = node.devices[device].subscribe(k)
        assert subscription.error is None
        assert bool(node.lag.offset) >= (not node.may_promise())
        assert subscription.is_known is not bool(node.lag.offset)
        assert node.refused_count() == refused + bool(node.lag.offset)

    @rule(device=devices)
    def unsubscribe(self, device):
        found = self.node.devices[device].subscriptions
        if len(found) > 1:
            self.node.devices[device].session.unsubscribe(found[-1])
            self.node.settle()

    @invariant()
    def no_promise_without_a_lease(self):
        """Whatever the node sends while it may not promise, its device shows EXACT nowhere afterwards."""
        if not hasattr(self, "node") or self.node.may_promise():
            return
        for name in self.node.has_sent:
            for one in self.node.devices[name].subscriptions:
                assert one.state is not SubscriptionState.EXACT, name

    @invariant()
    def results_are_those_of_what_is_applied(self):
        if not hasattr(self, "node"):
            return
        for name, device in self.node.devices.items():
            assert device.session.lag_offset <= self.node.offset()
            for one in device.subscriptions:
                if one.state in HELD:
                    ids = [match.object.id for match in one.results()]
                    assert ids == self.node.result(one.spec.k), name

    def teardown(self):
        if not hasattr(self, "node"):
            return
        self.node.is_behind = False
        self.node.notify()
        self.node.renewed_s = self.node.now_s
        was_lagging = {name for name, one in self.node.devices.items() if one.session.lag_offset}
        self.node.notify()
        for name, device in self.node.devices.items():
            stays = name in self.node.lost and name in was_lagging
            expected = SubscriptionState.LAGGING if stays else SubscriptionState.EXACT
            known = {one.state for one in device.subscriptions if one.is_known}
            assert known == {expected}
            assert stays or all(one.is_known for one in device.subscriptions)
            handles = self.node.coordinator.sessions[name].handles
            assert stays or set(handles) == set(device.session.subscriptions)
        self.node.coordinator.check()
        self.node.close()


TestLagging = Lagging.TestCase
TestLagging.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, print_blob=True
)


@pytest.fixture
def node():
    found = Node()
    yield found
    found.close()


def test_a_node_that_was_paused_says_so_before_it_responds(node):
    """The lease ends while nothing is executed; then the report of a device is there."""
    device = node.devices["d0"] = Device(node, "d0")
    device.connect()
    one = device.subscribe(2)
    node.apply(Publish(SHOP, (NewObject(14.51, 35.5, ("tea",), 3_600_000, b"", ""),)))
    assert one.state is SubscriptionState.EXACT
    offset = node.offset()
    node.now_s += LEASE_S
    seen = []
    session = device.session
    session.on_event = lambda: seen.append((one.state, session.lag_offset))
    session.ping(lambda: None)
    session.sender.report([one])
    node.settle()
    assert seen[0] == (SubscriptionState.LAGGING, offset)
    assert {state for state, _ in seen} <= {SubscriptionState.LAGGING, SubscriptionState.STALE}
    assert one.state is SubscriptionState.LAGGING
    node.renewed_s = node.now_s
    assert one.state is SubscriptionState.LAGGING, "the node has not said anything"
    node.notify()
    assert (one.state, session.lag_offset) == (SubscriptionState.EXACT, 0)


def test_a_subscription_that_is_known_is_evaluated_though_the_node_lags(node):
    device = node.devices["d0"] = Device(node, "d0")
    device.connect()
    one = device.subscribe(2)
    node.now_s += LEASE_S
    device.connect()
    assert one.state is SubscriptionState.LAGGING
    session = device.session
    session.sender.subscribe(one)
    node.settle()
    assert one.state is SubscriptionState.LAGGING
    other = device.subscribe(3)
    assert (other.state, other.error) == (SubscriptionState.STALE, None)
    assert not session.is_response_due
    session.unsubscribe(one)
    node.settle()
    handles = node.coordinator.sessions["d0"].handles
    assert set(handles) == {one.id}
    node.renewed_s = node.now_s
    node.notify()
    assert set(handles) == {other.id}, "both are requested again"
    assert other.state is SubscriptionState.EXACT
    session.ping(lambda: None)
    node.settle()
    assert set(handles) == {other.id}, "the end is sent again after a pong"
