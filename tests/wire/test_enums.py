"""Numbers that are written down in several rooms are the wire's."""

from __future__ import annotations

from dataclasses import fields

import pytest

from nearcast.errors import Reason
from nearcast.publisher import _OBJECTS_MAX
from nearcast.v1 import control_service_pb2, device_service_pb2, errors_pb2, subscriptions_pb2
from safe_region.regions.region import RegionMode
from safe_region.scoring.formulas import Similarity
from server.limits import Limits
from server.model import Cause, DropReason
from server.runtime.lifecycle import ServerState
from server.session import EndReason, RefusedCommand
from server.transport.status import CODES


@pytest.mark.parametrize(
    ("ours", "wire", "prefix"),
    [
        (Reason, errors_pb2.ErrorReason, "ERROR_REASON_"),
        (Cause, subscriptions_pb2.Cause, "CAUSE_"),
        (DropReason, subscriptions_pb2.DropReason, "DROP_REASON_"),
        (RegionMode, subscriptions_pb2.RegionMode, "REGION_MODE_"),
        (Similarity, subscriptions_pb2.Similarity, "SIMILARITY_"),
        (EndReason, device_service_pb2.EndReason, "END_REASON_"),
        (ServerState, control_service_pb2.ServerState, "SERVER_STATE_"),
        (RefusedCommand, device_service_pb2.Rejection.Command, "COMMAND_"),
    ],
)
def test_numbers_agree(ours, wire, prefix):
    named = {f"{prefix}{one.name}": one.value for one in ours}
    unspecified = f"{prefix}UNSPECIFIED"
    assert {unspecified: 0, **named} == dict(wire.items())


def test_every_reason_has_a_code():
    assert set(CODES) == set(Reason) - {Reason.UNSPECIFIED}


def test_devices_receive_limits_of_the_server():
    sent = set(device_service_pb2.Limits.DESCRIPTOR.fields_by_name)
    kept = {field.name for field in fields(Limits)}
    assert kept - sent == {
        "answer_ms_max",
        "holes_max",
        "clause_keywords_per_device_max",
        "take_over_ms",
        "take_over_ms_max",
        "dead_connection_ms",
        "outbox_max",
        "outbox_bytes_max",
        "slice_bytes_max",
        "sink_max",
        "retained_max",
        "retained_bytes_max",
        "answers_max",
        "late_ms",
        "queue_max",
        "batch_max",
        "batch_rows_max",
        "message_bytes_max",
        "fleet_bytes_max",
        "request_bytes_max",
        "publisher_objects_max",
        "publisher_bytes_max",
        "tenant_bytes_max",
        "device_windows_max",
        "tenant_windows_max",
        "tenant_objects_max",
        "tenant_subscriptions_max",
        "streams_max",
        "connections_max",
        "watchers_max",
        "tenant_watchers_max",
        "watch_devices_max",
        "watch_objects_max",
        "watch_cells_max",
    }
    assert sent <= kept
    assert Limits().objects_per_request_max == _OBJECTS_MAX


def test_the_largest_object_fits_into_a_message():
    limits = Limits()
    keywords = limits.object_keywords_max * limits.keyword_length_max * 4
    assert limits.payload_bytes_max + keywords < limits.message_bytes_max
