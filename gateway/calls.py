"""The calls of HTTP with JSON: paths, messages, rights and sizes, declared once.

Requests and responses are the messages of the protocol in the JSON of protobuf: names as in `proto/`,
64-bit numbers as text, bytes as base64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from identity.rules import Action
from nearcast.transport.channel import Channel
from nearcast.v1 import control_service_pb2, device_service_pb2, publisher_service_pb2

_KIB = 1024


class Call(NamedTuple):
    """One call."""

    name: str
    summary: str
    action: Action
    request: type[Any]
    response: type[Any]
    bytes_max: int
    """Size of a request's body; JSON is longer than the message."""
    elements_max: int
    """Fields and entries of a request, as the server bounds them; for JSON, in `elements_of`."""
    method: str = "POST"
    is_safe: bool = True
    """Whether the call changes nothing."""

    @property
    def path(self) -> str:
        """The path of the call."""
        return f"/v1/{self.name}"


PUBLISH = Call(
    "publish",
    "Publish objects. The response comes when they are on disk. With the header Idempotency-Key, which "
    "is the key of the only object, the request can be repeated safely.",
    Action.PUBLISH,
    publisher_service_pb2.PublishRequest,
    publisher_service_pb2.PublishResponse,
    4096 * _KIB,
    100_000,
    is_safe=False,
)
RETRACT = Call(
    "retract",
    "Retract objects by id or key.",
    Action.RETRACT,
    publisher_service_pb2.RetractRequest,
    publisher_service_pb2.RetractResponse,
    1024 * _KIB,
    16_384,
    is_safe=False,
)
SEARCH = Call(
    "search",
    "The result that a subscription would have at one place, now.",
    Action.SEARCH,
    device_service_pb2.SearchRequest,
    device_service_pb2.SearchResponse,
    256 * _KIB,
    8_192,
)
FORGET = Call(
    "forget",
    "Delete all data of a device permanently. It can be repeated.",
    Action.FORGET,
    device_service_pb2.ForgetDeviceRequest,
    device_service_pb2.ForgetDeviceResponse,
    8 * _KIB,
    256,
    is_safe=False,
)
STATUS = Call(
    "status",
    "State, gauges, counters and limits of the server.",
    Action.STATUS,
    control_service_pb2.StatusRequest,
    control_service_pb2.StatusResponse,
    0,
    0,
    "GET",
)
INSPECT = Call(
    "inspect",
    "One device, subscription or object, and why a device has an object or not.",
    Action.INSPECT,
    control_service_pb2.InspectRequest,
    control_service_pb2.InspectResponse,
    8 * _KIB,
    256,
)
CALLS = (PUBLISH, RETRACT, SEARCH, FORGET, STATUS, INSPECT)


def elements_of(body: bytes) -> int:
    """Return how many fields and entries a JSON text has at most: separators in texts count, too."""
    return body.count(b",") + body.count(b"{") + body.count(b"[")


def stub_of(call: Call, channel: Channel) -> Any:  # noqa: ANN401 - gRPC's
    """Return the method of the server that serves a call."""
    return {
        "publish": channel.publishers.Publish,
        "retract": channel.publishers.Retract,
        "search": channel.devices.Search,
        "forget": channel.devices.ForgetDevice,
        "status": channel.control.Status,
        "inspect": channel.control.Inspect,
    }[call.name]
