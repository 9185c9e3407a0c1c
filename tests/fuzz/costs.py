"""What one message costs the server: a caller who sends it again and again must not hold up others.

An input is a kind and either a recipe of the message (`tests.fuzz.recipes`) or how one that is as it
should be grows (`tests.fuzz.growth`), up to the size that the transport takes. The server has a small
world; the message is parsed, converted, validated, planned, evaluated, and what it makes the server
send is encoded. CPU time of this thread counts. One that takes longer than it may is taken three times
again, and the least counts, so compiling and caches are no findings. Each time a fixed piece of work is
measured beside it: where that takes longer than on an idle machine, so may the message.
"""

from __future__ import annotations

import gc
import json
import struct
import subprocess
import sys
import time

from tests.fuzz import cost_messages as messages
from tests.fuzz.cost_world import KINDS, World
from tests.fuzz.growth import Choices, grow
from tests.fuzz.recipes import message_of
from tests.fuzz.target import Target

COST_MS_MAX = 5.0
"""Of a message: as long as the loop may be held."""
OPERATION_MS_MAX = 0.1
"""More, for each operation beyond the first that is accepted, an object of a request, or an entry of a
fleet, accepted or not: the account is charged for each."""
MESSAGE_MS_MAX = 50.0
"""Of any message, however much it is charged for."""
AGAIN = 3
GROWTHS_MAX = 3
"""Fields of a message that become long."""
HOPELESS_MS = 100.0
"""Two runs that both take longer are no accident."""
YARDSTICK_MS = 0.17
"""CPU time of the fixed piece of work on the machine for which the bounds above are stated, when idle."""
_YARDSTICK = json.dumps(
    [{"lon": 12 + place / 1e3, "keywords": [f"a{place}", "b"]} for place in range(600)]
)
"""Parsing it reserves memory for many small objects, as parsing a message does."""
_SIZE = struct.Struct("<I")
"""Before each input that is measured again."""


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
            factor = slowness()
            one_ms, most_ms = self.cost_ms(kind, data)
            spent_ms.append(one_ms / max(factor, slowness()))
            if spent_ms[-1] <= most_ms:
                return
            if len(spent_ms) > 1 and min(spent_ms) > HOPELESS_MS:
                break
        shown = f"kind {kind}, {len(data)} bytes"
        raise AssertionError(f"{shown}: {min(spent_ms):.1f} ms of {most_ms:.1f}")


def slowness() -> float:
    """Return how many times longer than on an idle machine this thread takes now, at least 1."""
    begin_ns = time.thread_time_ns()
    json.loads(_YARDSTICK)
    return max(1.0, (time.thread_time_ns() - begin_ns) / 1e6 / YARDSTICK_MS)


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
    ("server.transport", "server.commands", "server.core", "identity.rules"),
    10_000,
)

if __name__ == "__main__":
    _judge()
