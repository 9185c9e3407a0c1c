"""A server that knows tokens of our key, of two tenants besides the default one; and callers."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest

from nearcast.v1 import (
    errors_pb2,
    publisher_service_pb2,
)
from tests.support.identity import bearer, keys_in
from tests.wire.conftest import served
from tests.wire.test_bad_input import an_object, check_details, hello


@contextlib.asynccontextmanager
async def a_city(folder, **flags):
    """A server that knows tokens of our key, of two tenants besides the default one, and its stubs."""
    flags = {"jwks": str(keys_in(folder)), "tenants": ["acme", "other"], **flags}
    async with served(**flags) as stubs:
        yield stubs


async def refused(call, reason, field):
    async with asyncio.timeout(20):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
    check_details(failed.value, reason, field)
    return failed.value


async def publish(city, who, *objects):
    """Publish as somebody; return the response."""
    call = city.publishers.Publish(metadata=bearer(who))
    await call.write(publisher_service_pb2.PublishRequest(objects=objects or [an_object()]))
    response = await call.read()
    await call.done_writing()
    await call.read()
    return response


async def attach(city, who, device_id="device"):
    """Say hello as somebody; return the stream and the answer."""
    call = city.devices.Attach(metadata=bearer(who))
    await call.write(hello(device_id=device_id))
    return call, await call.read()


def reason_of(error):
    return errors_pb2.ErrorReason.Name(error.reason).removeprefix("ERROR_REASON_")
