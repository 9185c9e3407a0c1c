"""Calls to a server whose process is stopped for longer than the first message of a call may take."""

from __future__ import annotations

import asyncio
import signal

import grpc
import pytest

from nearcast.v1 import control_service_pb2
from server.transport.first_message import WAIT_S
from tests.cli.test_serve import AREA, Process
from tests.wire.conftest import stubs_on
from tests.wire.test_bad_input import check_details

pytestmark = pytest.mark.processes
_CALLS = 16


@pytest.fixture
def process():
    process = Process(AREA, "--port=0", "--store=:memory:")
    yield process
    process.send(signal.SIGCONT)
    assert process.signal(signal.SIGTERM) == 0


async def test_a_request_that_was_not_read_in_time_may_be_sent_again(process):
    async with grpc.aio.insecure_channel(process.target) as channel:
        calls = [channel.stream_stream("/nearcast.v1.ControlService/Status")() for _ in range(_CALLS)]
        for call in calls:
            await call.wait_for_connection()
        stubs = stubs_on(channel)
        await stubs.control.Status(control_service_pb2.StatusRequest())  # the server reads the others
        process.send(signal.SIGSTOP)
        paused_s = asyncio.get_running_loop().time()
        for call in calls:
            await call.write(control_service_pb2.StatusRequest().SerializeToString())
        await asyncio.sleep(paused_s + WAIT_S - asyncio.get_running_loop().time())
        process.send(signal.SIGCONT)
        ends = [await _end_of(call) for call in calls]
        refused = [end for end in ends if end is not None]
        assert refused  # the time of most was over before their requests could be read
        for failure in refused:
            assert failure.code() is grpc.StatusCode.UNAVAILABLE
            check_details(failure, "RECOVERING", "request")
        await stubs.control.Status(control_service_pb2.StatusRequest())


async def _end_of(call):
    """Return how a call failed; None if it has a response."""
    try:
        await call.read()
    except grpc.aio.AioRpcError as error:
        return error
    return None
