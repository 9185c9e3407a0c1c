"""The server's decoders, validation and session table: requests of several callers, one after the other.

An input is a sequence of messages, each with who sends it and on which stream. What is refused must have
changed nothing; at times the bookkeeping is verified from the definitions.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from itertools import chain

from google.protobuf.message import DecodeError

from identity.principal import Principal, Role
from nearcast.errors import RefusedError
from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    geometry_pb2,
    objects_pb2,
    publisher_service_pb2,
    subscriptions_pb2,
)
from safe_region.earth.frame import Area, Frame
from safe_region.scoring.idf import IdfError, IdfTable
from server import command as c
from server.clock import Clock
from server.commands.acceptor import Accepted, Acceptor
from server.commands.plan import Plan, slices
from server.commands.planner import Planner
from server.commands.validation import checked_report
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.core.watching.devices import DeviceColumns
from server.core.watching.watcher import Watcher
from server.limits import Limits
from server.session import Outbox
from server.transport import converters
from server.transport.inspections import inspect_from, inspect_message
from server.transport.specs import spec_from
from server.transport.watch_messages import view_from, watch_message
from tests.fuzz.target import Target

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
LIMITS = Limits(outbox_max=8, retained_max=8, devices_per_fleet_max=4, tenant_objects_max=40)
HEADER = struct.Struct("<BBH")
MESSAGES_MAX = 12
RENEWED = 200
"""Inputs after which the server is another one: it is to have few objects and many histories."""
CHECKED = 20

DEVICE, PUBLISH, RETRACT, SEARCH, CLOCK, IDF, FLEET, FORGET, INSPECT, WATCH = range(10)
PARSERS = (
    device_service_pb2.AttachRequest,
    publisher_service_pb2.PublishRequest,
    publisher_service_pb2.RetractRequest,
    device_service_pb2.SearchRequest,
    control_service_pb2.AdvanceClockRequest,
    control_service_pb2.SetIdfRequest,
    device_service_pb2.AttachFleetRequest,
    device_service_pb2.ForgetDeviceRequest,
    control_service_pb2.InspectRequest,
    control_service_pb2.WatchRequest,
)
CALLERS = (
    Principal("", frozenset(Role)),
    Principal("gate", frozenset({Role.GATEWAY, Role.PUBLISHER}), "acme"),
    Principal("d", frozenset({Role.DEVICE, Role.PUBLISHER})),
    Principal("d", frozenset({Role.DEVICE, Role.PUBLISHER}), "acme"),
)


class Answer:
    """Where a reply goes; a future without an event loop."""

    def __init__(self) -> None:
        self._reply: tuple[object, int] | None = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return False

    def set_result(self, reply: tuple[object, int]) -> None:
        self._reply = reply

    def set_exception(self, error: BaseException) -> None:
        self._error = error

    def taken(self) -> tuple[object, int]:
        if self._error is not None:
            raise self._error
        return self._reply


class Server:
    """A server without sockets and disk, and the streams that it has."""

    def __init__(self) -> None:
        self.coordinator = Coordinator(FRAME, LIMITS, clock=Clock(is_virtual=True), lease_ms=1_000)
        self.planner = Planner(self.coordinator)
        self.acceptor = Acceptor(self.coordinator)
        self.devices = DeviceColumns(self.coordinator)
        self.streams = {
            (who, number): Outbox(principal=caller)
            for who, caller in enumerate(CALLERS)
            for number in range(2)
        }

    def state(self) -> object:
        """All that a command could change, in short."""
        coordinator = self.coordinator
        return (
            coordinator.matching.now_ms,
            coordinator.latest_object_id,
            sorted(coordinator.keys),
            dict(coordinator.subscription_counts),
            {
                name: (session.state, session.version, tuple(session.handles))
                for name, session in coordinator.sessions.items()
            },
            coordinator.matching.generation,
        )

    def take(self, who: int, kind: int, stream: int, data: bytes) -> None:
        """Take a message as the transport does."""
        try:
            message = PARSERS[kind].FromString(data)
        except DecodeError:
            return
        caller, outbox = CALLERS[who], self.streams[who, stream]
        before = self.state()
        try:
            if isinstance(message, control_service_pb2.WatchRequest):
                self.watch(message, caller)
                return
            for command in commands_of(message, caller, outbox):
                self.carry_out(command)
                before = self.state()  # each command of a fleet's message is one of its own
        except RefusedError as error:
            assert error.field is not None
            assert self.state() == before, f"refused, and something has changed: {error}"
        except IdfError:
            assert self.state() == before
        for one in self.streams.values():
            while len(one):
                self.coordinator.router.take(one, 16)
                one.wrote()

    def watch(self, request: control_service_pb2.WatchRequest, caller: Principal) -> None:
        """Select frames, as a stream does, until there are no more rows."""
        view = view_from(request, caller, LIMITS)
        watcher, has_more = Watcher(self.coordinator, self.devices, caller.tenant), True
        while has_more:
            (found,) = [one for one in watcher.frame(view) if one is not None]
            message = watch_message(found, 1, 1, FRAME)
            assert len(message.objects.ids) <= view.objects_max
            assert len(message.devices.ids) <= view.devices_max + 1
            assert "\x1f" not in "".join(message.devices.ids)
            has_more = found.has_more

    def carry_out(self, command: c.Command) -> None:
        """Carry a command out alone."""
        coordinator = self.coordinator
        accepted = Accepted()
        if not isinstance(command, c.DurableCommand):
            response = Answer() if isinstance(command, c.Inspect) else None
            self.acceptor.accept(command, response, accepted)
            self.acceptor.finish(accepted)
            if response is not None:
                inspect_message(*response.taken())
            return
        (decision,) = self.planner.plan_batch([command])
        if isinstance(decision, RefusedError):
            raise decision
        assert isinstance(decision, Plan)
        batch = EvaluationBatch()
        decision.apply(batch)
        if decision.publication is not None:
            for fresh, replaced in slices([decision.publication], 2):
                coordinator.publish(fresh, replaced)
        coordinator.evaluate(batch)
        while coordinator.reweigh():
            pass
        coordinator.take_late(sys.maxsize)


def commands_of(message: object, caller: Principal, outbox: Outbox) -> Iterator[c.Command]:
    """Read commands as the services do."""
    match message:
        case device_service_pb2.AttachRequest():
            yield from device_commands(message, outbox, message.hello.device_id or "d")
        case device_service_pb2.AttachFleetRequest():
            for entry in message.entries[:8]:
                if entry.HasField("request"):
                    yield from device_commands(entry.request, outbox, entry.device_id)
                else:
                    yield c.Detach(outbox, caller.qualified(entry.device_id))
        case _:
            yield command_of(message, caller)


def command_of(message: object, caller: Principal) -> c.Command:  # noqa: PLR0911 - one a message
    """Read the command of a call."""
    match message:
        case publisher_service_pb2.PublishRequest():
            chunks = converters.objects_from(message, LIMITS)
            return c.Publish(tuple(chain.from_iterable(chunks)), caller)
        case publisher_service_pb2.RetractRequest():
            return converters.retract_from(message, caller)
        case device_service_pb2.ForgetDeviceRequest():
            return c.ForgetDevice(caller.qualified(message.device_id), caller)
        case control_service_pb2.InspectRequest():
            return inspect_from(message, caller)
        case device_service_pb2.SearchRequest():
            where = converters.position_from(
                message.position, "position", present=message.HasField("position")
            )
            return c.Search(spec_from(message.spec), *where, caller)
        case control_service_pb2.AdvanceClockRequest():
            return c.AdvanceClock(message.time_ms, caller)
        case control_service_pb2.SetIdfRequest():
            return c.SetIdf(IdfTable(dict(message.weights), message.unknown_weight), caller)
    raise AssertionError(message)


def device_commands(
    request: device_service_pb2.AttachRequest, outbox: Outbox, name: str
) -> Iterator[c.Command]:
    device_id = outbox.principal.qualified(name)
    if request.WhichOneof("command") == "report":
        session = outbox.devices.get(device_id)
        report = converters.report_from(outbox, session, device_id, request.report)
        yield checked_report(report, LIMITS)
    else:
        yield converters.device_command_from(outbox, device_id, request)


def make():
    state = {"server": Server(), "count": 0}

    def run(data: bytes) -> None:
        state["count"] += 1
        if state["count"] % RENEWED == 0:
            state["server"] = Server()
        server = state["server"]
        for _ in range(MESSAGES_MAX):
            if len(data) < HEADER.size:
                break
            kind, who, size = HEADER.unpack_from(data)
            rest = data[HEADER.size :]
            server.take(who // 2 % len(CALLERS), kind % len(PARSERS), who % 2, rest[:size])
            data = rest[size:]
        if state["count"] % CHECKED == 0:
            server.coordinator.check()

    return run


def framed(kind: int, who: int, message: object) -> bytes:
    data = message.SerializeToString()
    return HEADER.pack(kind, who, len(data)) + data


def seeds() -> list[bytes]:
    here = geometry_pb2.Position(lon=14.5, lat=35.5)
    attach = device_service_pb2.AttachRequest
    hello = attach(
        hello=device_service_pb2.Hello(device_id="d", instance_nonce=b"n", position=here, margin_m=1.0)
    )
    top_k = subscriptions_pb2.SubscriptionSpec(
        top_k=subscriptions_pb2.TopK(keywords=["a", "b"], k=2, alpha=0.5, similarity=1)
    )
    scaled = subscriptions_pb2.SubscriptionSpec()
    scaled.CopyFrom(top_k)
    scaled.top_k.distance_scale_m = 5000.0
    boolean = subscriptions_pb2.SubscriptionSpec()
    boolean.boolean.clauses.add(required=["a"], excluded=["b"])
    boolean.boolean.circle.radius_m = 500.0
    boolean.boolean.moving = True
    fixed = subscriptions_pb2.SubscriptionSpec()
    fixed.boolean.clauses.add(required=["b"])
    for lon, lat in ((14.1, 35.1), (14.9, 35.1), (14.5, 35.9)):
        fixed.boolean.polygon.outer.vertices.add(lon=lon, lat=lat)
    fixed.window.duration_ms = 500
    report = attach(
        report=device_service_pb2.Report(
            sequence=1, position=here, subscription_ids=[1, 2], heading_deg=9.0, speed_mps=3.0
        )
    )
    item = objects_pb2.NewObject(position=here, keywords=["a"], ttl_ms=900, payload=b"p", key="k")
    wide = objects_pb2.NewObject(keywords=["a", "b"], ttl_ms=900)
    wide.area.rectangle.lon_min, wide.area.rectangle.lat_min = 14.4, 35.4
    wide.area.rectangle.lon_max, wide.area.rectangle.lat_max = 14.6, 35.6
    publish = publisher_service_pb2.PublishRequest(sequence=1, objects=[item, wide])
    subscribes = [
        attach(subscribe=device_service_pb2.Subscribe(subscription_id=i, spec=spec, position=here))
        for i, spec in enumerate((top_k, boolean, fixed, scaled), 1)
    ]
    search = device_service_pb2.SearchRequest(spec=scaled, position=here)
    others = [
        attach(ping=device_service_pb2.Ping(number=1, version=1)),
        attach(ack=device_service_pb2.Ack(version=1)),
        attach(unsubscribe=device_service_pb2.Unsubscribe(subscription_id=1)),
    ]
    fleet = device_service_pb2.AttachFleetRequest()
    fleet.entries.add(device_id="d", request=hello)
    fleet.entries.add(device_id="d", request=subscribes[0])
    fleet.entries.add(device_id="d")
    clock = control_service_pb2.AdvanceClockRequest(time_ms=400)
    idf = control_service_pb2.SetIdfRequest(weights={"a": 2.0}, unknown_weight=3.0)
    retract = publisher_service_pb2.RetractRequest(ids=[1])
    by_key = publisher_service_pb2.RetractRequest(ids=[1], keys=["k", "x"])
    forget = device_service_pb2.ForgetDeviceRequest(device_id="d")
    object_of_key = control_service_pb2.InspectRequest(object_key="k")
    device = control_service_pb2.InspectRequest(device_id="d")
    watch = control_service_pb2.WatchRequest(
        objects_max=1, grid_columns=2, grid_rows=2, keyword="a", device_id="d"
    )
    watch.view.lon_min, watch.view.lat_min, watch.view.lon_max, watch.view.lat_max = (
        14.0,
        35.0,
        15.0,
        36.0,
    )
    subscription = control_service_pb2.InspectRequest()
    subscription.subscription.device_id, subscription.subscription.subscription_id = "d", 1
    subscription.subscription.object_key = "k"
    found = []
    for who in range(2 * len(CALLERS)):
        begin = framed(DEVICE, who, hello)
        found += [begin + framed(DEVICE, who, one) + framed(PUBLISH, who, publish) for one in subscribes]
        found.append(begin + framed(DEVICE, who, subscribes[0]) + framed(FORGET, who, forget) + begin)
        found.append(
            begin
            + framed(DEVICE, who, subscribes[who % 3])
            + framed(PUBLISH, who, publish)
            + framed(INSPECT, who, subscription)
            + framed(INSPECT, who, device)
        )
        found.append(
            begin + b"".join(framed(DEVICE, who, one) for one in (subscribes[0], report, *others))
        )
    found += [
        framed(FLEET, 2, fleet),
        framed(SEARCH, 0, search),
        framed(CLOCK, 0, clock) + framed(IDF, 0, idf),
        framed(PUBLISH, 2, publish) + framed(RETRACT, 2, retract),
        framed(PUBLISH, 2, publish) + framed(RETRACT, 2, by_key) + framed(RETRACT, 0, by_key),
        framed(PUBLISH, 0, publish) + framed(INSPECT, 0, object_of_key),
        framed(DEVICE, 0, hello) + framed(PUBLISH, 2, publish) + framed(WATCH, 0, watch),
    ]
    return found


COMMANDS = Target(
    "commands",
    make,
    seeds,
    ("server.transport", "server.commands", "server.session", "server.core", "identity.rules"),
    200_000,
)
