"""Convert messages to plain dictionaries, which operators print or read as JSON."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def plain(message: Message) -> dict[str, Any]:
    """Return the fields of a message by name. Enums become their names; absent fields are left out.

    Numbers stay numbers, infinity included. A field without presence is included even if it is 0.
    """
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            found[field.name] = [_plain(one, field) for one in value]
        elif not field.has_presence or message.HasField(field.name):
            found[field.name] = _plain(value, field)
    return found


def _plain(value: Any, field: Any) -> Any:  # noqa: ANN401 - whatever a field of either library may hold
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return plain(value)
    if field.type == FieldDescriptor.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
