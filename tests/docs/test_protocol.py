"""docs/protocol.md: complete, readable by protobuf, and what a server really says."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
import pytest
from google.protobuf import symbol_database, text_format
from google.protobuf.descriptor import FieldDescriptor

from nearcast.v1 import (
    control_service_pb2,
    control_service_pb2_grpc,
    device_service_pb2,
    device_service_pb2_grpc,
    publisher_service_pb2,
    publisher_service_pb2_grpc,
)
from server.counters import Counters
from tests.support.servers import serving
from tests.wire.conftest import settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text()
BLOCKS = re.findall(r"```textproto\n# (.*?): (\w+)\n(.*?)```", PAGE, re.DOTALL)
SERVICES = [
    module.DESCRIPTOR.services_by_name[name]
    for module, name in (
        (device_service_pb2, "DeviceService"),
        (publisher_service_pb2, "PublisherService"),
        (control_service_pb2, "ControlService"),
    )
]


def parsed(name, text):
    kind = symbol_database.Default().GetSymbol(f"nearcast.v1.{name}")
    return text_format.Parse(text, kind())


def test_every_operation_is_there_with_examples_of_its_messages():
    shown = {name for _, name, _ in BLOCKS}
    for service in SERVICES:
        for method in service.methods:
            assert f"[`{service.name}.{method.name}`](#{method.name.lower()})" in PAGE
            assert f"\n### {method.name}\n" in PAGE
            assert {method.input_type.name, method.output_type.name} <= shown


def messages(descriptor, found=None):
    found = {} if found is None else found
    if descriptor.full_name.startswith("nearcast.v1.") and descriptor.full_name not in found:
        found[descriptor.full_name] = descriptor
        for one in descriptor.fields:
            if one.type == FieldDescriptor.TYPE_MESSAGE:
                messages(one.message_type, found)
    return found


TOLD_ELSEWHERE = {
    *("Limits", "Frame", "Position", "Point", "Bounds", "Ring", "Polygon", "Circle", "Rectangle"),
    *("Object", "ObjectArea", "SubscriptionSpec", "TopK", "Boolean", "Clause", "Window", "Slack"),
}
"""What goes into a message of an operation; the proto files tell."""


def test_every_field_of_an_operation_is_documented():
    words = set(re.findall(r"\w+", PAGE))
    for service in SERVICES:
        for method in service.methods:
            for root in (method.input_type, method.output_type):
                for message in messages(root).values():
                    if message.name in TOLD_ELSEWHERE or message.GetOptions().map_entry:
                        continue
                    missing = {one.name for one in message.fields} - words
                    assert not missing, f"{message.name}: {missing}"


@pytest.mark.parametrize("index", range(len(BLOCKS)))
def test_every_example_is_a_message(index):
    _, name, text = BLOCKS[index]
    assert parsed(name, text).IsInitialized()


def test_every_gauge_and_counter_is_documented():
    documented = set(re.findall(r"`([a-z_]+(?:\.[A-Z_]+)?)`", PAGE))
    for name in Counters().named():
        assert name in documented or name.startswith("rejected."), name


def includes(response, shown):
    """Whether a message says at least what the page shows."""
    for one, value in shown.ListFields():
        found = getattr(response, one.name)
        if one.type == FieldDescriptor.TYPE_MESSAGE and one.message_type.GetOptions().map_entry:
            assert {key: found[key] for key in value} == dict(value), one.name
        elif one.is_repeated and one.type == FieldDescriptor.TYPE_MESSAGE:
            assert len(found) == len(value), one.name
            for said_item, shown_item in zip(found, value, strict=True):
                includes(said_item, shown_item)
        elif one.type == FieldDescriptor.TYPE_MESSAGE:
            assert response.HasField(one.name), one.name
            includes(found, value)
        else:
            assert found == value, one.name


async def test_the_conversation_is_that_of_a_server():
    async with (
        serving(settings(virtual_time=True)) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        devices = device_service_pb2_grpc.DeviceServiceStub(channel)
        publishers = publisher_service_pb2_grpc.PublisherServiceStub(channel)
        control = control_service_pb2_grpc.ControlServiceStub(channel)
        await control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=1_000))
        streams = {"Attach": devices.Attach(), "Publish": publishers.Publish()}
        calls = {
            "Search": devices.Search,
            "ForgetDevice": devices.ForgetDevice,
            "Retract": publishers.Retract,
            "Sync": control.Sync,
            "AdvanceClock": control.AdvanceClock,
            "Status": control.Status,
            "Inspect": control.Inspect,
        }
        responses = {}
        count = 0
        for who, name, text in BLOCKS:
            message = parsed(name, text)
            operation = re.sub("(Request|Response|Frame)$", "", name)
            if who == "client" and operation == "Watch":
                streams[operation] = control.Watch()
            if who == "client" and operation in streams:
                await streams[operation].write(message)
            elif who == "client" and operation == "SetIdf":
                responses[operation] = await control.SetIdf([message])
            elif who == "client":
                responses[operation] = await calls[operation](message)
            elif who == "server":
                count += 1
                includes(
                    await streams[operation].read() if operation in streams else responses[operation],
                    message,
                )
        documented = set(re.findall(r"`([a-z_]+(?:\.[A-Z_]+)?)`", PAGE))
        assert set(responses["Status"].gauges) <= documented
        assert count == sum(who == "server" for who, _, _ in BLOCKS) >= 15
        streams["Attach"].cancel()
        streams["Watch"].cancel()
