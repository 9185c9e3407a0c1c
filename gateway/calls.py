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
    method: str = "POST"

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
)
RETRACT = Call(
    "retract",
    "Retract objects by id or key.",
    Action.RETRACT,
    publisher_service_pb2.RetractRequest,
    publisher_service_pb2.RetractResponse,
    1024 * _KIB,
)
SEARCH = Call(
    "search",
    "The result that a subscription would have at one place, now.",
    Action.SEARCH,
    device_service_pb2.SearchRequest,
    device_service_pb2.SearchResponse,
    256 * _KIB,
)
STATUS = Call(
    "status",
    "State, gauges, counters and limits of the server.",
    Action.STATUS,
    control_service_pb2.StatusRequest,
    control_service_pb2.StatusResponse,
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
)
CALLS = (PUBLISH, RETRACT, SEARCH, STATUS, INSPECT)


def stub_of(call: Call, channel: Channel) -> Any:  # noqa: ANN401 - gRPC's
    """Return the method of the server that serves a call."""
    return {
        "publish": channel.publishers.Publish,
        "retract": channel.publishers.Retract,
        "search": channel.devices.Search,
        "status": channel.control.Status,
        "inspect": channel.control.Inspect,
    }[call.name]
