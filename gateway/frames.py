"""Frames of a device: parsed, and held within the bounds of a fleet stream.

The server ends a fleet stream with a message that breaks its bounds, and with it the conversations of all
devices on it. So no frame is forwarded that could. The numbers are those of
`server/transport/message_bounds.py`, which a test compares; within them the server decides, and its
rejections name the limits exactly.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from nearcast.errors import Reason, RefusedError
from nearcast.v1 import device_service_pb2
from nearcast.wire.errors import error_message

FRAME_BYTES_MAX = 64 * 1024
"""Size of a device's frame, as of a message of `Attach`."""

NAME_LENGTH_MAX = 128
"""Characters of a device id."""

COUNTS_MAX = {
    "Boolean.clauses": 512,
    "Clause.excluded": 128,
    "Clause.required": 128,
    "Polygon.holes": 512,
    "Report.subscription_ids": 512,
    "Ring.vertices": 4096,
    "TopK.keywords": 128,
}
"""Maximum count of each repeated field, by message and field."""

KEYWORD_BYTES_MAX = 1024
"""Maximum bytes of a text in a repeated field."""

_REJECTION = device_service_pb2.Rejection
_NUMBERS = {
    "subscribe": (_REJECTION.COMMAND_SUBSCRIBE, "subscription_id"),
    "unsubscribe": (_REJECTION.COMMAND_UNSUBSCRIBE, "subscription_id"),
    "report": (_REJECTION.COMMAND_REPORT, "sequence"),
}

Request = device_service_pb2.AttachRequest
Response = device_service_pb2.AttachResponse

_Message = TypeVar("_Message", bound=Message)


def parsed(kind: type[_Message], data: bytes) -> _Message:
    """Return the message in a frame, without fields that are not known here.

    Raises
    ------
    RefusedError
        If the frame is no such message.
    """
    try:
        message = kind.FromString(data)
    except DecodeError:
        limit = f"a serialized {kind.DESCRIPTOR.full_name}"
        raise RefusedError(Reason.INVALID_FIELD, "frame", f"{len(data)} bytes", limit) from None
    message.DiscardUnknownFields()
    return message


def request_from(data: bytes) -> Request:
    """Return the request of a device in a frame; see `parsed`."""
    return parsed(Request, data)


def require_bounds(request: Request, kind: str | None) -> None:
    """Raise RefusedError if the server would not parse a request."""
    if kind in ("report", "subscribe"):
        _require_bounds(getattr(request, kind), "")


def _require_bounds(message: Message, path: str) -> None:
    name = message.DESCRIPTOR.name
    for field, value in message.ListFields():
        where = f"{path}{field.name}"
        if field.is_repeated:
            _require_count(f"{name}.{field.name}", where, value)
        elif field.message_type is not None:
            _require_bounds(value, f"{where}.")
            continue
        if field.message_type is not None:
            for i, item in enumerate(value):
                _require_bounds(item, f"{where}[{i}].")


def _require_count(name: str, where: str, values: list[object]) -> None:
    count_max = COUNTS_MAX[name]
    if len(values) > count_max:
        raise RefusedError(Reason.INVALID_FIELD, where, f"{len(values)} long", f"at most {count_max}")
    for i, value in enumerate(values):
        if isinstance(value, str) and len(value.encode()) > KEYWORD_BYTES_MAX:
            limit = f"at most {KEYWORD_BYTES_MAX} bytes"
            raise RefusedError(Reason.INVALID_FIELD, f"{where}[{i}]", f"{len(value)} characters", limit)


def rejection_of(request: Request, kind: str | None, error: RefusedError) -> bytes:
    """Return the frame that rejects a request."""
    command, field = _NUMBERS.get(kind or "", (_REJECTION.COMMAND_UNSPECIFIED, ""))
    if kind == "hello":
        command = _REJECTION.COMMAND_HELLO
    number = getattr(getattr(request, kind), field) if kind and field else 0
    rejection = _REJECTION(number=number, command=command, error=error_message(error))
    return Response(rejection=rejection).SerializeToString()


def go_away_frame(error: RefusedError) -> bytes:
    """Return the frame that announces the end of a connection."""
    return Response(go_away={"error": error_message(error)}).SerializeToString()


def detached_frame(error: RefusedError) -> bytes:
    """Return the frame that ends the conversation of a device."""
    return Response(detached={"error": error_message(error)}).SerializeToString()
