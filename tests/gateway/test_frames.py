"""The bounds of frames are those of the server's fleet streams."""

from __future__ import annotations

from gateway import fleet_messages, frames
from gateway.calls import CALLS, elements_of
from gateway.device_socket import BYTES_MAX, EVENTS_MAX
from nearcast.v1 import device_service_pb2
from server.limits import Limits
from server.transport.message_bounds import SMALL, field_bytes, field_counts, message_bounds
from tests.wire.test_bad_input import hello


def test_bounds_are_the_servers():
    limits = Limits()
    counts = field_counts(limits)
    assert {name: counts[name] for name in frames.COUNTS_MAX} == frames.COUNTS_MAX
    texts = field_bytes(limits)
    assert {texts[name] for name in frames.COUNTS_MAX if name in texts} == {frames.KEYWORD_BYTES_MAX}
    assert message_bounds(limits)["Attach"].bytes_max == frames.FRAME_BYTES_MAX
    assert limits.name_length_max == frames.NAME_LENGTH_MAX
    assert (limits.outbox_max, limits.outbox_bytes_max) == (EVENTS_MAX, BYTES_MAX)


def test_bounds_of_bodies_are_the_servers():
    bounds = message_bounds(Limits())
    for call in CALLS:
        if call.bytes_max:
            assert call.elements_max == bounds.get(call.name.capitalize(), SMALL).elements_max


def test_elements_of_a_body_are_at_least_its_fields():
    body = b'{"ids": ["1", "2"], "keys": ["a,b"]}'
    assert elements_of(body) == 6  # two fields, three entries, a comma in a text


def test_every_repeated_field_that_a_device_can_send_has_a_bound():
    seen, found = set(), set()

    def walk(message):
        if message.full_name in seen:
            return
        seen.add(message.full_name)
        for field in message.fields:
            if field.is_repeated:
                found.add(f"{message.name}.{field.name}")
            if field.message_type is not None:
                walk(field.message_type)

    walk(device_service_pb2.AttachRequest.DESCRIPTOR)
    assert found == set(frames.COUNTS_MAX)


def test_unknown_fields_are_dropped():
    data = hello().SerializeToString()
    unknown = bytes([15 << 3 | 2, 100]) + bytes(100)
    assert frames.request_from(data + unknown).SerializeToString() == data


def test_fleet_messages_have_the_bytes_of_the_protocol():
    request = hello()
    message = fleet_messages.FleetRequest()
    message.entries.add(device_id="a", request=request.SerializeToString())
    message.entries.add(device_id="b")
    expected = device_service_pb2.AttachFleetRequest()
    expected.entries.add(device_id="a", request=request)
    expected.entries.add(device_id="b")
    assert device_service_pb2.AttachFleetRequest.FromString(message.SerializeToString()) == expected
    response = device_service_pb2.AttachResponse(pong=device_service_pb2.Pong(number=7))
    sent = device_service_pb2.AttachFleetResponse()
    sent.entries.add(device_id="a", response=response)
    (entry,) = fleet_messages.FleetResponse.FromString(sent.SerializeToString()).entries
    assert entry.response == response.SerializeToString()
