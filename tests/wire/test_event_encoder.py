"""Messages put together from pieces say what the same messages written by protobuf say."""

from __future__ import annotations

import pytest

from nearcast.v1 import device_service_pb2
from safe_region.earth.frame import Area, Frame, Point
from server import session as s
from server.limits import Limits
from server.model import Cause, Delta, DropReason, Entry, LiveObject, Reach
from server.transport.converters import delta_message, object_message
from server.transport.event_encoder import EventEncoder, field

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))


def live(object_id, payload=b""):
    point = Point(1.5, -2.5)
    return LiveObject(object_id, 14.5, 35.5, point, ("cake", "tea"), 1, 2**41, payload, f"key{object_id}")


def deltas():
    for adds in ([], [live(1)], [live(2, bytes(127)), live(3, bytes(20_000)), live(2, bytes(127))]):
        for drop in ({}, {5: DropReason.OUT_OF_REACH, 6: DropReason.REPLACED}):
            entries = [Entry(item, 4.25) for item in adds]
            reach = Reach(float("inf"), 2**60)
            delta = Delta(9, Cause.REPORTED, Point(1.0, 2.0), reach, 77, entries, drop, snapshot=not drop)
            yield s.VersionedDelta(2**33, 3, 4, delta, delta.size_bytes)


@pytest.fixture
def writer():
    return EventEncoder(FRAME, Limits(), virtual_time=False)


@pytest.mark.parametrize("event", list(deltas()))
def test_a_delta_is_whole(writer, event):
    expected = delta_message(event)
    for entry in event.delta.add:
        expected.add.add(object=object_message(entry.item), r_m=entry.r_m)
    for _ in range(2):  # written, and kept
        found = device_service_pb2.AttachResponse.FromString(writer.response(event))
        assert found == device_service_pb2.AttachResponse(delta=expected)


def test_a_response_of_a_fleet_is_whole(writer):
    events = [("a" * 128, s.Pong(2**40)), ("ß", next(deltas())), ("b", s.Unsubscribed(7))]
    found = device_service_pb2.AttachFleetResponse.FromString(writer.fleet_response(events))
    assert [entry.device_id for entry in found.entries] == ["a" * 128, "ß", "b"]
    for entry, (_, event) in zip(found.entries, events, strict=True):
        assert entry.response.SerializeToString() == writer.response(event)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, 16_383, 16_384, 2**21 - 1, 2**21])
def test_a_field_is_written_as_protobuf_writes_it(size):
    text = "x" * size
    number = device_service_pb2.Hello.DESCRIPTOR.fields_by_name["device_id"].number
    assert device_service_pb2.Hello.FromString(field(number, text.encode())).device_id == text
