"""The messages of `AttachFleet` with the requests and responses of devices as bytes.

They have the same bytes on the wire as `AttachFleetRequest` and `AttachFleetResponse`: a nested message
is encoded like bytes. So a response is forwarded without being parsed and serialized again.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "nearcast.gateway"
_FIELD = descriptor_pb2.FieldDescriptorProto
_MESSAGES = {"FleetRequest": "request", "FleetResponse": "response"}


def _file() -> descriptor_pb2.FileDescriptorProto:
    """Return the description of the messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name="nearcast/gateway/fleet_messages.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, field in _MESSAGES.items():
        message = file.message_type.add(name=name)
        entry = message.nested_type.add(name="Entry")
        entry.field.add(name="device_id", number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
        entry.field.add(
            name=field,
            number=2,
            type=_FIELD.TYPE_BYTES,
            label=_FIELD.LABEL_OPTIONAL,
            proto3_optional=True,
            oneof_index=0,
        )
        entry.oneof_decl.add(name=f"_{field}")
        message.field.add(
            name="entries",
            number=1,
            type=_FIELD.TYPE_MESSAGE,
            type_name=f".{_PACKAGE}.{name}.Entry",
            label=_FIELD.LABEL_REPEATED,
        )
        message.field.add(
            name="go_away",
            number=2,
            type=_FIELD.TYPE_BYTES,
            label=_FIELD.LABEL_OPTIONAL,
            proto3_optional=True,
            oneof_index=0,
        )
        message.oneof_decl.add(name="_go_away")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def _message(name: str) -> Any:  # noqa: ANN401 - made at run time
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


FleetRequest = _message("FleetRequest")
FleetResponse = _message("FleetResponse")
