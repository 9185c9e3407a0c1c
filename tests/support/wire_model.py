"""The wire walker as a plain model: bounds counted on what protobuf's own parser has made of bytes."""

from __future__ import annotations

from server.transport.message_bounds import MessageBound


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
        count += sum(element_count(one) for one in values if field.message_type is not None)
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


def _values(field, value):
    if not field.is_repeated:
        return (value,)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type._concrete_class
        return [entry(key=key, value=one) for key, one in value.items()]
    return value


def _size(text: str | bytes) -> int:
    return len(text.encode() if isinstance(text, str) else text)
