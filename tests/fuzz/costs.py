"""What one message costs the server: a caller who sends it again and again must not hold up others.

An input is a kind and either a recipe of the message (`tests.fuzz.recipes`) or how one that is as it
should be grows (`tests.fuzz.growth`), up to the size that the transport takes. The server has a small
world; the message is parsed, converted, validated, planned, evaluated, and what it makes the server
send is encoded. CPU time of this thread counts. One that takes longer than it may is taken three times
again, and the least counts: so compiling, caches and a busy machine are no findings.
"""

from __future__ import annotations

import contextlib
import gc
import struct
import subprocess
import sys
import time
from typing import NamedTuple

from google.protobuf.message import DecodeError

from nearcast.v1 import device_service_pb2, publisher_service_pb2
from server.commands import command as c
from server.commands.acceptor import Accepted, Acceptor
from server.commands.plan import Plan
from server.commands.planner import Planner
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.errors import Reason, RefusalError
from server.limits import Limits
from server.principal import Principal, Role
from server.session import Outbox
from server.transport import converters
from server.transport.event_encoder import EventEncoder
from server.transport.specs import spec_from
from tests.fuzz import cost_messages as messages
from tests.fuzz.commands import FRAME, Answer, commands_of, device_commands
from tests.fuzz.cost_messages import (
    DEVICE,
    FLEET,
    HELLO,
    NAME,
    OBJECTS,
    PUBLISH,
    RETRACT,
    SEARCH,
)
from tests.fuzz.growth import Choices, grow
from tests.fuzz.recipes import message_of
from tests.fuzz.target import Target

COST_MS_MAX = 5.0
"""Of a message: as long as the loop may be held."""
OPERATION_MS_MAX = 0.1
"""More, for each operation beyond the first that is accepted, an object of a request or an entry of a
fleet: the account is charged for each."""
MESSAGE_MS_MAX = 50.0
"""Of any message, however much it is charged for."""
AGAIN = 3
GROWTHS_MAX = 3
"""Fields of a message that become long."""
HOPELESS_MS = 100.0
"""Two runs that both take longer are no accident."""

LIMITS = Limits()
_SIZE = struct.Struct("<I")
"""Before each input that is measured again."""


class Kind(NamedTuple):
    """What is sent where."""

    message: type
    bytes_max: int
    """What the transport takes from who may send it."""


KINDS = {
    HELLO: Kind(device_service_pb2.AttachRequest, LIMITS.request_bytes_max),
    DEVICE: Kind(device_service_pb2.AttachRequest, LIMITS.request_bytes_max),
    FLEET: Kind(device_service_pb2.AttachFleetRequest, LIMITS.message_bytes_max),
    SEARCH: Kind(device_service_pb2.SearchRequest, LIMITS.request_bytes_max),
    PUBLISH: Kind(publisher_service_pb2.PublishRequest, LIMITS.message_bytes_max),
    RETRACT: Kind(publisher_service_pb2.RetractRequest, LIMITS.message_bytes_max),
}
CALLER = Principal(NAME, frozenset(Role))


def request_of(kind: int, data: bytes) -> object:
    """Do what the transport does with the bytes of a message before anybody looks at its fields.

    Whatever bounds a message by its size or its structure belongs in front of the parser here, too.

    Raises
    ------
    RefusalError
        If it is refused without being parsed.
    DecodeError
        If it cannot be parsed.
    """
    if len(data) > KINDS[kind].bytes_max:
        raise RefusalError(
            Reason.INVALID_FIELD,
            "request",
            f"{len(data)} bytes",
            f"at most {KINDS[kind].bytes_max} bytes",
        )
    return KINDS[kind].message.FromString(data)


class World:
    """A server without sockets and disk, with some objects and one device that has subscribed."""

    def __init__(self) -> None:
        self.coordinator = Coordinator(FRAME, LIMITS, virtual_time=True, lease_ms=1_000)
        self._planner = Planner(self.coordinator)
        self._acceptor = Acceptor(self.coordinator)
        self._encoder = EventEncoder(FRAME, LIMITS, virtual_time=True, lease_ms=1_000)
        self._outbox = Outbox(principal=CALLER)
        self._receive(PUBLISH, messages.stock())
        self._specs = dict(enumerate(messages.specs(), 1))
        self.published_max = self.coordinator.latest_object_id
        self.operation_count = 0
        """What the last message was accepted for: commands, of a request to publish its objects."""
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
        self.operation_count = 0
        try:
            request = request_of(kind, data)
            if kind == FLEET:
                self._carry_out_fleet(request)
            elif kind != HELLO or request.HasField("hello"):
                for command in commands_of(request, CALLER, self._outbox):
                    self._carry_out(command)
        except (DecodeError, RefusalError):
            pass
        self._written()

    def _carry_out_fleet(self, request: device_service_pb2.AttachFleetRequest) -> None:
        """Carry out the command of each entry: one that is refused does not end the message."""
        for entry in request.entries:
            with contextlib.suppress(RefusalError):
                if entry.HasField("request"):
                    for command in device_commands(entry.request, self._outbox, entry.device_id):
                        self._carry_out(command)
                else:
                    self._carry_out(c.Detach(self._outbox, CALLER.qualified(entry.device_id)))

    def _carry_out(self, command: c.Command) -> None:
        coordinator = self.coordinator
        if not isinstance(command, c.DurableCommand):
            answer = Answer() if isinstance(command, c.Search) else None
            accepted = Accepted()
            self._acceptor.accept(command, answer, accepted)
            self._acceptor.finish(accepted)
            self.operation_count += 1
            if answer is not None:
                ranked, now_ms = answer.taken()
                place = command.lon, command.lat
                response = converters.search_message(command.spec, ranked, FRAME, place, now_ms)
                response.SerializeToString()
            return
        (decision,) = self._planner.plan_batch([command])
        if isinstance(decision, RefusalError):
            raise decision
        assert isinstance(decision, Plan)
        batch = EvaluationBatch()
        decision.apply(batch)
        self.operation_count += 1
        if decision.publication is not None:
            self.operation_count += len(decision.publication.fresh) - 1
            coordinator.publish(decision.publication.fresh, decision.publication.replaced)
        coordinator.evaluate(batch)
        coordinator.late_mutations.clear()

    def _written(self) -> None:
        """Encode what is to be sent."""
        while len(self._outbox):
            for _, event in self.coordinator.take(self._outbox, 16):
                self._encoder.response(event)
            self._outbox.wrote()


class Meter:
    """Measures messages, each against the same world.

    Parameters
    ----------
    cost_ms_max
        What one may cost, without what it is charged for.
    """

    def __init__(self, cost_ms_max: float = COST_MS_MAX) -> None:
        self._cost_ms_max = cost_ms_max
        self._world = World()

    def cost_ms(self, kind: int, data: bytes) -> tuple[float, float]:
        """Return what a message costs, and what it may cost."""
        if self._world.is_worn:
            self._world = World()
        world = self._world
        world.prepare(kind)
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            begin_ns = time.thread_time_ns()
            world.receive(kind, data)
            spent_ms = (time.thread_time_ns() - begin_ns) / 1e6
        finally:
            if was_enabled:
                gc.enable()
        more = OPERATION_MS_MAX * max(0, world.operation_count - 1)
        return spent_ms, min(self._cost_ms_max + more, MESSAGE_MS_MAX)

    def check(self, kind: int, data: bytes) -> None:
        """Require that a message costs no more than it may.

        Raises
        ------
        AssertionError
            If the least of several runs takes longer.
        """
        spent_ms = []
        for _ in range(1 + AGAIN):
            one_ms, most_ms = self.cost_ms(kind, data)
            spent_ms.append(one_ms)
            if one_ms <= most_ms:
                return
            if len(spent_ms) > 1 and min(spent_ms) > HOPELESS_MS:
                break
        shown = f"kind {kind}, {len(data)} bytes"
        raise AssertionError(f"{shown}: {min(spent_ms):.1f} ms of {most_ms:.1f}")


class Judge:
    """Another process, which measures again: following what an input reaches takes time of its own.

    Parameters
    ----------
    cost_ms_max
        As of a meter.
    """

    def __init__(self, cost_ms_max: float = COST_MS_MAX) -> None:
        self._cost_ms_max = cost_ms_max
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, data: bytes) -> None:
        """Require that the message of an input costs no more than it may.

        Raises
        ------
        AssertionError
            If it does.
        """
        if self._process is None:
            command = [sys.executable, "-m", "tests.fuzz.costs", repr(self._cost_ms_max)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self._process
        process.stdin.write(_SIZE.pack(len(data)) + data)
        process.stdin.flush()
        line = process.stdout.readline().decode()
        assert line, "the process that measures again has ended"
        if line.strip():
            raise AssertionError(line.strip())

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


def _judge() -> None:
    """Measure inputs of standard input; write a line for each, empty if it costs no more than it may."""
    meter, source = Meter(float(sys.argv[1])), sys.stdin.buffer
    while size := source.read(_SIZE.size):
        data = source.read(_SIZE.unpack(size)[0])
        try:
            meter.check(*sent(data))
        except AssertionError as error:
            print(error, flush=True)  # noqa: T201 - what the other process reads
        else:
            print(flush=True)  # noqa: T201 - the same


def make():
    meter, judge = Meter(), Judge()

    def run(data: bytes) -> None:
        if not data:
            return
        try:
            meter.check(*sent(data))
        except AssertionError:
            judge.check(data)

    return run


def sent(data: bytes) -> tuple[int, bytes]:
    """Return the kind and the bytes of the message that an input stands for."""
    kind, is_grown = data[0] % len(KINDS), data[0] // len(KINDS) % 2
    bytes_max = KINDS[kind].bytes_max
    if not is_grown:
        # One byte more than the transport takes, so that what refuses it is seen, too.
        return kind, message_of(data[1:], bytes_max + 1)
    choices = Choices(data[1:])
    mine = [message for other, message in messages.messages() if other == kind]
    message = mine[choices.below(len(mine))]
    for _ in range(GROWTHS_MAX):
        if not choices.is_over:
            grow(message, choices)
    return kind, message.SerializeToString()[: bytes_max + 1]


COSTS = Target(
    "costs",
    make,
    messages.seeds,
    ("server.transport", "server.commands", "server.core", "server.rules"),
    10_000,
)

if __name__ == "__main__":
    _judge()
