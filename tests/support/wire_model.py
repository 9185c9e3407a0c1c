"""The wire walker as a plain model: bounds counted on what protobuf's own parser has made of bytes, and
on the bytes themselves, a field at a time."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from google.protobuf.message_factory import GetMessageClass

from server.transport.message_bounds import MessageBound

_NUMBER_BYTES_MAX = 10
_NUMBER_MASK = 2**63 - 1
_DEPTH_MAX = 12
_FIELD_NUMBERS = range(1, 16)
"""Numbers of fields whose bounds are known; whatever has another number counts as one field."""


def encoded_number(value: int) -> bytes:
    """Return a varint."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def element_count(message) -> int:
    """Count the fields of a parsed message as the walker does: numbers of packed fields one by one."""
    count = 0
    for field, value in message.ListFields():
        values = list(_values(field, value))
        count += len(values)
        if _is_map(field):
            count += 2 * len(values)  # both are written, whatever they are
        elif field.message_type is not None:
            count += sum(map(element_count, values))
    return count


def is_within(message, counts: dict[str, int], sizes: dict[str, int]) -> bool:
    """Whether each repeated field of a parsed message, and each text, is within its bound."""
    for field, value in message.ListFields():
        values = list(_values(field, value))
        name = f"{message.DESCRIPTOR.name}.{field.name}"
        if field.is_repeated and len(values) > counts[name]:
            return False
        for one in values:
            if field.message_type is not None and not is_within(one, counts, sizes):
                return False
            if isinstance(one, str | bytes) and _size(one) > sizes.get(name, 2**62):
                return False
    return True


def fits(message, bound: MessageBound, counts: dict[str, int], sizes: dict[str, int]) -> bool:
    """Whether a message that was parsed keeps all bounds."""
    return element_count(message) <= bound.elements_max and is_within(message, counts, sizes)


class Refused(NamedTuple):
    """Which bound a message breaks first."""

    field: str
    limit: str


def walked(data: bytes, descriptor, bound: MessageBound, counts: dict[str, int], sizes: dict[str, int]):
    """Return how many fields the bytes of a message have, or the first bound that they break."""
    reader = _Reader(bound, counts, sizes)
    try:
        reader.read(data, descriptor, [])
    except _RefusedError as error:
        return error.refused
    return reader.count


class _RefusedError(Exception):
    def __init__(self, field: str, limit: str) -> None:
        self.refused = Refused(field, limit)


class _Reader:
    """Reads messages within messages, in the order of their bytes."""

    def __init__(self, bound: MessageBound, counts: dict[str, int], sizes: dict[str, int]) -> None:
        self._bound = bound
        self._counts = counts
        self._sizes = sizes
        self.count = 0

    def read(self, data: bytes, descriptor, path: list[str]) -> None:
        if len(path) == _DEPTH_MAX:
            raise _unreadable()
        found: Counter[int] = Counter()
        at = 0
        while at < len(data):
            tag, at = _number(data, at)
            number, wire = tag >> 3, tag & 7
            if not number:
                raise _unreadable()
            value, at = _value(data, at, wire)
            field = descriptor.fields_by_number.get(number) if number in _FIELD_NUMBERS else None
            found[number] += (count := _value_count(field, wire, value))
            self.count += count
            if field is not None:
                self._verify(field, found[number], wire, value, path)
            if self.count > self._bound.elements_max:
                raise _RefusedError("request", f"at most {self._bound.elements_max} fields")
            if field is not None and field.message_type is not None and wire == 2:
                place = f"[{found[number] - 1}]" if field.is_repeated else ""
                self.read(value, field.message_type, [*path, field.name + place])

    def _verify(self, field, count: int, wire: int, value: bytes, path: list[str]) -> None:
        name = f"{field.containing_type.name}.{field.name}"
        count_max = self._counts[name] if field.is_repeated else 1
        size_max = self._sizes.get(name, 2**62)
        is_text = wire == 2 and field.type in (field.TYPE_STRING, field.TYPE_BYTES)
        if count > count_max:
            raise _RefusedError(".".join([*path, field.name]), f"at most {count_max} entries")
        if is_text and len(value) > size_max:
            raise _RefusedError(".".join([*path, field.name]), f"at most {size_max} bytes")


def _unreadable() -> _RefusedError:
    return _RefusedError("request", "a message of the type that the method takes")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; beyond 63 bits it is for the parser to refuse."""
    value = 0
    for i, byte in enumerate(data[at : at + _NUMBER_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value & _NUMBER_MASK, at + i + 1
    raise _unreadable()


def _value(data: bytes, at: int, wire: int) -> tuple[bytes, int]:
    """Return the bytes of a value, and where they end."""
    if wire == 0:
        end = _number(data, at)[1]
    elif wire == 2:
        size, at = _number(data, at)
        end = at + size
    elif wire in {1, 5}:
        end = at + (8 if wire == 1 else 4)
    else:
        raise _unreadable()
    if end > len(data):
        raise _unreadable()
    return data[at:end], end


def _value_count(field, wire: int, value: bytes) -> int:
    """Count the values of a field: of a packed one its numbers."""
    is_text = field is None or field.type in (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE)
    if is_text or wire != 2 or not field.is_repeated:
        return 1
    if field.type in (field.TYPE_DOUBLE, field.TYPE_FIXED64):
        return len(value) // 8
    return sum(byte < 0x80 for byte in value)


def _is_map(field) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _values(field, value):
    if not field.is_repeated:
        return (value,)
    if _is_map(field):
        entry = GetMessageClass(field.message_type)
        return [entry(key=key, value=one) for key, one in value.items()]
    return value


def _size(text: str | bytes) -> int:
    return len(text.encode() if isinstance(text, str) else text)


def filled(message, chance, depth=0):
    """Fill a message with whatever its fields may have."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.3 + 0.05 * depth:
            continue
        for _ in range(chance.choice((0, 1, 2, 9)) if field.is_repeated else 1):
            _fill(message, field, chance, depth)
    return message


def _fill(message, field, chance, depth):
    if _is_map(field):
        getattr(message, field.name)[f"word{chance.randrange(100)}"] = chance.random()
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        inner = inner.add() if field.is_repeated else inner
        inner.SetInParent()
        filled(inner, chance, depth + 1)
    else:
        value = {
            field.TYPE_STRING: "wörter" * chance.choice((0, 1, 30)),
            field.TYPE_BYTES: bytes(chance.choice((0, 5, 700))),
            field.TYPE_BOOL: True,
            field.TYPE_ENUM: 1,
            field.TYPE_DOUBLE: chance.random(),
        }.get(field.type, chance.choice((0, 1, 300, 2**31 - 1)))
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
