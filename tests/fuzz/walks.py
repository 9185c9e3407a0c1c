"""The walk over a message's bytes: the kernel against a plain reader, and against what protobuf parses.

An input is a method, which limits, and either bytes, a recipe of bytes (`tests.fuzz.recipes`), or a seed
of a message that is as it should be and changes to its bytes. The walk and the plain reader must give
the same count, or refuse by the same bound. What passes and can be parsed keeps all bounds; encoded once
more it passes if, and only if, it does.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from server.limits import Limits
from server.transport.authentication import SERVICES
from server.transport.message_bounds import SMALL, MessageBound, field_bytes, field_counts, message_bounds
from server.transport.wire_walk import MessageTypes, UnreadableError, Walker, address_of
from tests.fuzz.recipes import literal, message_of, repeated
from tests.fuzz.target import Target
from tests.support.wire_model import Refused, element_count, filled, fits, walked

_SMALL_LIMITS = Limits(
    object_keywords_max=2,
    subscription_keywords_max=1,
    keyword_length_max=1,
    payload_bytes_max=4,
    objects_per_request_max=1,
    subscriptions_per_device_max=2,
    name_length_max=1,
    clauses_max=1,
    clause_keywords_max=1,
    vertices_max=1,
    request_bytes_max=1_500,
    fleet_bytes_max=1_500,
    message_bytes_max=1_500,
)
"""So that short messages come to their bounds."""

_BYTES_MAX = 20_000
"""Of a message made by a recipe: more fields than a device's message may have fit in it."""
_UNWALKED_BYTES = 512
"""Shorter messages are parsed at once."""
_HEAD_BYTES = 64
_SEED_BYTES = 2
_CHANGE_BYTES = 4
BYTES, RECIPE, CHANGES = range(3)


class _Method(NamedTuple):
    """A method, and the bounds of its messages."""

    name: str
    message: type
    walker: Walker
    bound: MessageBound
    counts: dict[str, int]
    sizes: dict[str, int]

    def model(self, data: bytes) -> int | Refused:
        """Return what a walk should come to."""
        return walked(data, self.message.DESCRIPTOR, self.bound, self.counts, self.sizes)


def _methods() -> list[_Method]:
    found = []
    for limits in (Limits(), _SMALL_LIMITS):
        types, bounds = MessageTypes(limits), message_bounds(limits)
        for service in (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME):
            for method in Default().FindServiceByName(service).methods:
                request = method.input_type
                walker = types.walker(request, method.name)
                bound = bounds.get(method.name, SMALL)
                sizes = field_bytes(limits)
                message = GetMessageClass(request)
                found.append(_Method(method.name, message, walker, bound, field_counts(limits), sizes))
    return found


def _outcome(walk: Any, data: bytes) -> int | Refused | None:
    try:
        return walk(data)
    except UnreadableError as error:
        assert error.head in (b"", data[:_HEAD_BYTES])
        return Refused(error.field, error.limit)


def _check(method: _Method, data: bytes) -> None:
    expected = method.model(data)
    found = _outcome(method.walker.walk, data)
    assert found == expected, f"{method.name}: {found}, not {expected}"
    size_max = method.bound.bytes_max
    if len(data) > size_max:
        expected = Refused("request", f"at most {size_max} bytes")
    elif len(data) < _UNWALKED_BYTES or not isinstance(expected, Refused):
        expected = None
    found_of_verify = _outcome(method.walker.verify, data)
    assert found_of_verify == expected, f"{method.name}: {found_of_verify}, not {expected}"
    address_of(data[:_HEAD_BYTES])
    try:
        message = method.message.FromString(data)
    except DecodeError:
        return
    is_within = fits(message, method.bound, method.counts, method.sizes)
    assert isinstance(found, Refused) or is_within, f"{method.name}: it has passed, and is too large"
    message.DiscardUnknownFields()
    found = _outcome(method.walker.walk, message.SerializeToString())
    if fits(message, method.bound, method.counts, method.sizes):
        assert found == element_count(message), f"{method.name}: {found}, and it is within its bounds"
    else:
        assert isinstance(found, Refused), f"{method.name}: it has passed, and is too large"


def _changed(data: bytes, changes: bytes) -> bytes:
    """Change bytes: each four are a place, what is done there, and a byte."""
    found = bytearray(data)
    for i in range(0, len(changes) - _CHANGE_BYTES + 1, _CHANGE_BYTES):
        low, high, step, byte = changes[i : i + _CHANGE_BYTES]
        at = (low | high << 8) % (len(found) + 1)
        found[at : at + step % 3] = bytes([byte])[: 1 + step % 2]
    return bytes(found)


def bytes_of(form: int, rest: bytes, message: type, bytes_max: int) -> bytes:
    """Return the bytes of a message that an input stands for."""
    if form == RECIPE:
        return message_of(rest, bytes_max)
    if form == CHANGES:
        seed = int.from_bytes(rest[:_SEED_BYTES], "little")
        right = filled(message(), random.Random(seed))
        return _changed(right.SerializeToString(), rest[_SEED_BYTES:])[:bytes_max]
    return rest


def _make():
    methods = _methods()

    def run(data: bytes) -> None:
        if len(data) < 2:
            return
        method = methods[data[0] % len(methods)]
        _check(method, bytes_of(data[1] % 3, data[2:], method.message, _BYTES_MAX))

    return run


def _seeds() -> list[bytes]:
    found = []
    for number in range(len(_methods())):
        found += [bytes([number, CHANGES, seed, 0]) for seed in range(2)]
        found.append(bytes([number, CHANGES, 7, 1, 9, 0, 1, 255, 40, 0, 2, 8]))
        found.append(bytes([number, BYTES]) + b"\x0a\x00" * 9)
        found.append(bytes([number, RECIPE]) + repeated(literal(b"\x12\x00"), 5_000))
        found.append(bytes([number, RECIPE]) + repeated(literal(b"\x7a\x00"), 9_000))
    return found


WALKS = Target("walks", _make, _seeds, ("server.transport.wire_walk",), 100_000)
