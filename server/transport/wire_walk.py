"""Bounds before meaning: the structure of a message is verified on its bytes before it is parsed.

Operations: O(fields of the message), some nanoseconds each (`wire_kernels`), less than parsing takes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.errors import Reason, RefusedError
from nearcast.v1 import geometry_pb2
from server.limits import Limits
from server.transport import wire_kernels as k
from server.transport.message_bounds import SMALL, MessageBound, field_bytes, field_counts, message_bounds

_WALKED_BYTES_MIN = 512
"""Shorter messages are parsed at once: with any content, that takes a few microseconds."""

NOT_PARSABLE, PARSABLE = "not parsable", "a message of the type that the method takes"
"""Value and limit in the refusal of a message that cannot be parsed."""

_UNBOUNDED = np.iinfo(np.int64).max


class UnreadableError(RefusedError):
    """A message that is refused for its structure. `head` has its first bytes."""

    def __init__(self, field: str, value: object, limit: str, head: bytes = b"") -> None:
        super().__init__(Reason.INVALID_FIELD, field, value, limit)
        self.head = head


class Address(NamedTuple):
    """The first field of a message, and its number: of a command, or the sequence of a request."""

    field: int
    number: int


class MessageTypes:
    """The types of requests, as arrays for the kernel.

    Parameters
    ----------
    limits
        The limits from which the bounds follow.
    """

    def __init__(self, limits: Limits) -> None:
        self._counts = field_counts(limits)
        self._bytes = field_bytes(limits)
        self._bounds = message_bounds(limits)
        self._numbers: dict[str, int] = {}
        self._descriptors: list[Any] = []
        self._rows: list[Any] = []
        self._fields = np.zeros((0, k.FIELDS, 4), dtype=np.int64)

    def walker(self, descriptor: Any, method: str) -> Walker:  # noqa: ANN401 - protobuf has no type for it
        """Return the walker that verifies messages of a type for a method.

        Raises
        ------
        KeyError
            If a repeated field has no bound.
        """
        number = self._number(descriptor)
        self._fields = np.array(self._rows, dtype=np.int64)
        return Walker(self, number, self._bounds.get(method, SMALL))

    @property
    def fields(self) -> k.Fields:
        """All types."""
        return self._fields

    def _number(self, descriptor: Any) -> int:  # noqa: ANN401
        """Return the number of a type; add it, with all nested types, if it is new."""
        known = self._numbers.get(descriptor.full_name)
        if known is not None:
            return known
        number = self._numbers[descriptor.full_name] = len(self._rows)
        self._descriptors.append(descriptor)
        row = [[k.UNKNOWN, 0, 0, 0] for _ in range(k.FIELDS)]
        self._rows.append(row)
        for field in descriptor.fields:
            row[field.number] = self._field(descriptor, field)
        return number

    def _field(self, descriptor: Any, field: Any) -> list[int]:  # noqa: ANN401
        name = f"{descriptor.name}.{field.name}"
        count_max = self._counts[name] if field.is_repeated else 1
        if field.message_type is not None:
            return [k.MESSAGE, self._number(field.message_type), count_max, 0]
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            return [k.TEXT, 0, count_max, self._bytes.get(name, _UNBOUNDED)]
        kind = k.NUMBER
        if field.is_repeated:
            is_fixed = field.type in (field.TYPE_DOUBLE, field.TYPE_FIXED64)
            kind = k.PACKED_FIXED if is_fixed else k.PACKED_VARINTS
        return [kind, 0, count_max, 0]

    def path_name(self, path: k.Path, steps: int) -> str:
        """Return the name of a field by its path, as errors do: ``objects[3].keywords``."""
        names: list[str] = []
        for i, (number, field_number, count) in enumerate(path[:steps].tolist()):
            field = self._descriptors[number].fields_by_number.get(field_number)
            name = field.name if field is not None else f"field {field_number}"
            is_within = field is not None and field.is_repeated and i < steps - 1
            names.append(f"{name}[{count - 1}]" if is_within else name)
        return ".".join(names)

    def most(self, path: k.Path, steps: int, column: int) -> int:
        """Return a bound of the last field of a path."""
        number, field_number, _ = path[steps - 1].tolist()
        return int(self._fields[number, field_number, column])


def warm_up_walk() -> None:
    """Call the kernel with a small message."""
    types = MessageTypes(Limits())
    types.walker(geometry_pb2.Position.DESCRIPTOR, "Position").walk(b"")


class Walker:
    """Verifies messages of one method. Made by `MessageTypes`."""

    def __init__(self, types: MessageTypes, root: int, bound: MessageBound) -> None:
        self._types = types
        self._root = root
        self.bound = bound

    def verify(self, data: bytes) -> None:
        """Verify that a message may be parsed.

        Raises
        ------
        UnreadableError
            Naming the field that breaks a bound, the value, the limit.
        """
        size, most = len(data), self.bound.bytes_max
        if size > most:
            raise UnreadableError("request", f"{size} bytes", f"at most {most} bytes", data[:_HEAD_BYTES])
        if size >= _WALKED_BYTES_MIN:
            self.walk(data)

    def walk(self, data: bytes) -> int:
        """Walk a message of any size; return the number of its fields. Raises as `verify` does."""
        types = self._types
        path = np.zeros((k.DEPTH_MAX, k.PATH_WIDTH), dtype=np.int64)
        array = np.frombuffer(data, dtype=np.uint8)
        verdict, steps, length, elements = k.walk(
            array, types.fields, self._root, self.bound.elements_max, path
        )
        if verdict == k.FINE:
            return elements
        head = data[:_HEAD_BYTES]
        if verdict == k.MALFORMED:
            raise UnreadableError(
                "request", "not parsable", "a message of the type that the method takes"
            )
        name = types.path_name(path, steps)
        if verdict == k.TOO_MANY:
            most = types.most(path, steps, k.COUNT_MAX)
            raise UnreadableError(name, f"more than {most} entries", f"at most {most} entries", head)
        if verdict == k.TOO_LONG:
            most = types.most(path, steps, k.BYTES_MAX)
            raise UnreadableError(name, f"{length} bytes", f"at most {most} bytes", head)
        most = self.bound.elements_max
        raise UnreadableError("request", f"more than {most} fields", f"at most {most} fields", head)


_HEAD_BYTES = 64
"""Bytes of a refused message that are kept: enough to identify its command."""

_VARINT_BYTES_MAX = 10


def address_of(head: bytes) -> Address | None:
    """Return the first command of a message and its number; None if the bytes do not show them.

    The first field of every command is its number: a subscription's number, a report's sequence.
    """
    tag, at = _number_at(head, 0)
    if tag & 7 == 0:
        return Address(tag >> 3, _number_at(head, at)[0]) if 0 < at <= len(head) else None
    _, at = _number_at(head, at)
    inner, at = _number_at(head, at)
    if tag & 7 != 2 or inner != 1 << 3 or at > len(head):  # noqa: PLR2004 - wire types
        return None
    return Address(tag >> 3, _number_at(head, at)[0])


def _number_at(head: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = 0
    for i, byte in enumerate(head[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return value, at + i + 1
    return 0, len(head) + 1
