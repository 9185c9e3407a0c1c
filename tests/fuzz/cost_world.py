"""A server without sockets and disk, and what it does with the bytes of one message."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from identity.principal import Principal, Role
from nearcast.errors import RefusedError
from nearcast.v1 import device_service_pb2, publisher_service_pb2
from server import command as c
from server.clock import Clock
from server.commands.acceptor import Accepted, Acceptor
from server.commands.plan import Plan, slices
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.limits import Limits
from server.session import Outbox
from server.transport import converters
from server.transport.event_encoder import EventEncoder
from server.transport.specs import spec_from
from server.transport.wire_walk import MessageTypes, Walker
from tests.fuzz import cost_messages as messages
from tests.fuzz.commands import FRAME, Answer, commands_of, device_commands
from tests.fuzz.cost_messages import DEVICE, FLEET, HELLO, NAME, OBJECTS, PUBLISH, RETRACT, SEARCH

LIMITS = Limits()


class Kind(NamedTuple):
    """What is sent where."""

    message: type
    walker: Walker

    @property
    def bytes_max(self) -> int:
        """What the transport takes."""
        return self.walker.bound.bytes_max


def _kind(message: type, method: str) -> Kind:
    return Kind(message, MessageTypes(LIMITS).walker(message.DESCRIPTOR, method))


KINDS = {
    HELLO: _kind(device_service_pb2.AttachRequest, "Attach"),
    DEVICE: _kind(device_service_pb2.AttachRequest, "Attach"),
    FLEET: _kind(device_service_pb2.AttachFleetRequest, "AttachFleet"),
    SEARCH: _kind(device_service_pb2.SearchRequest, "Search"),
    PUBLISH: _kind(publisher_service_pb2.PublishRequest, "Publish"),
    RETRACT: _kind(publisher_service_pb2.RetractRequest, "Retract"),
}
CALLER = Principal(NAME, frozenset(Role))


def request_of(kind: int, data: bytes) -> object:
    """Do what the transport does with the bytes of a message before anybody looks at its fields.

    Raises
    ------
    RefusedError
        If it is refused without being parsed.
    DecodeError
        If it cannot be parsed.
    """
    KINDS[kind].walker.verify(data)
    return KINDS[kind].message.FromString(data)


class World:
    """A server without sockets and disk, with some objects and one device that has subscribed."""

    def __init__(self) -> None:
        self.coordinator = Coordinator(FRAME, LIMITS, clock=Clock(is_virtual=True), lease_ms=1_000)
        self._planner = Planner(self.coordinator)
        self._acceptor = Acceptor(self.coordinator)
        self._encoder = EventEncoder(FRAME, LIMITS, virtual_time=True, lease_ms=1_000)
        self._outbox = Outbox(principal=CALLER)
        self._receive(PUBLISH, messages.stock())
        self._specs = dict(enumerate(messages.specs(), 1))
        self.published_max = self.coordinator.latest_object_id
        self.operation_count = 0
        """What the account is charged for the last message: commands, objects to publish, entries."""
        self._instance = 0

    def prepare(self, kind: int) -> None:
        """Be as before any message: of a first message the device is not attached, else it is."""
        coordinator = self.coordinator
        later = range(self.published_max + 1, coordinator.latest_object_id + 1)
        coordinator.retract([number for number in later if number in coordinator.matching.objects])
        for device_id in list(self._outbox.devices):
            coordinator.detach(self._outbox, device_id)
        self._outbox = Outbox(principal=CALLER)
        if kind == HELLO:
            return
        self._instance += 1  # another one, whose reports count from 1 again
        self._receive(HELLO, messages.hello(b"%d" % self._instance))
        handles = self._outbox.devices[CALLER.id].handles
        for number in set(handles) - set(self._specs):
            self._receive(DEVICE, messages.unsubscribe(number))
        for number, spec in self._specs.items():
            known = handles.get(number)
            if known is None or coordinator.matching.spec(known) != spec_from(spec):
                self._receive(DEVICE, messages.subscribe(number, spec))
        self._written()

    @property
    def is_worn(self) -> bool:
        """Whether objects have gone that were there: it is to be another one."""
        return len(self.coordinator.matching.objects) < OBJECTS

    def _receive(self, kind: int, message: object) -> None:
        self.receive(kind, message.SerializeToString())

    def receive(self, kind: int, data: bytes) -> None:
        """Do what the server does with the bytes of a message."""
        self.operation_count = charged = 0
        try:
            request = request_of(kind, data)
            charged = self._charged(kind, request)
            if kind == FLEET:
                self._carry_out_fleet(request)
            elif kind != HELLO or request.HasField("hello"):
                for command in commands_of(request, CALLER, self._outbox):
                    self._carry_out(command)
        except (DecodeError, RefusedError):
            pass
        self.operation_count = max(self.operation_count, charged)
        self._written()

    @staticmethod
    def _charged(kind: int, request: Any) -> int:
        """Return what is charged even if it is refused.

        The server reads objects and entries in portions, between which others have their turn.
        """
        if kind == PUBLISH:
            return len(request.objects)
        return len(request.entries) if kind == FLEET else 0

    def _carry_out_fleet(self, request: device_service_pb2.AttachFleetRequest) -> None:
        """Carry out the command of each entry: one that is refused does not end the message."""
        for entry in request.entries:
            with contextlib.suppress(RefusedError):
                if entry.HasField("request"):
                    for command in device_commands(entry.request, self._outbox, entry.device_id):
                        self._carry_out(command)
                else:
                    self._carry_out(c.Detach(self._outbox, CALLER.qualified(entry.device_id)))

    def _carry_out(self, command: c.Command) -> None:
        coordinator = self.coordinator
        if not isinstance(command, c.DurableCommand):
            reply = Answer() if isinstance(command, c.Search) else None
            accepted = Accepted()
            self._acceptor.accept(command, reply, accepted)
            self._acceptor.finish(accepted)
            self.operation_count += 1
            if reply is not None:
                ranked, now_ms = reply.taken()
                place = command.lon, command.lat
                for build in converters.search_parts(command.spec, ranked, FRAME, place, now_ms):
                    build().SerializeToString()
            return
        (decision,) = self._planner.plan_batch([command])
        if isinstance(decision, RefusedError):
            raise decision
        assert isinstance(decision, Plan)
        batch = EvaluationBatch()
        decision.apply(batch)
        self.operation_count += 1
        if decision.publication is not None:
            self.operation_count += len(decision.publication.created) - 1
            for created, replaced in slices([decision.publication], OBJECTS):
                coordinator.publish(created, replaced)
        coordinator.evaluate(batch)
        coordinator.take_late(sys.maxsize)

    def _written(self) -> None:
        """Encode what is to be sent."""
        while len(self._outbox):
            for _, event in self.coordinator.router.take(self._outbox, 16):
                self._encoder.response(event)
            self._outbox.wrote()
