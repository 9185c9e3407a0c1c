"""A real server on a free port, a real channel, real stubs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc

from nearcast.v1 import (
    control_service_pb2_grpc,
    device_service_pb2_grpc,
    publisher_service_pb2_grpc,
)
from server.settings import load_settings
from tests.support.servers import serving

AREA = "14,35,15,36"


def settings(**flags):
    # A fixed b, so that tests can say what is held.
    defaults = {"area": AREA, "store": ":memory:", "port": 0, "buffer_extra": 8, "reflection": True}
    return load_settings({**defaults, **flags})


@pytest.fixture
async def server():
    async with serving(settings()) as server:
        yield server


def stubs_on(channel):
    return SimpleNamespace(
        channel=channel,
        devices=device_service_pb2_grpc.DeviceServiceStub(channel),
        publishers=publisher_service_pb2_grpc.PublisherServiceStub(channel),
        control=control_service_pb2_grpc.ControlServiceStub(channel),
        health=health_pb2_grpc.HealthStub(channel),
    )


@asynccontextmanager
async def served(limits=None, **flags):
    """Run a server with some settings; yield stubs, with the server and the channel."""
    async with (
        serving(settings(**flags), limits) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        stubs = stubs_on(channel)
        stubs.server = server
        yield stubs


@pytest.fixture
async def stubs(server):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield stubs_on(channel)


@pytest.fixture
async def city(tmp_path):
    from tests.wire.city import a_city  # noqa: PLC0415 - which takes its settings from here

    async with a_city(tmp_path) as city:
        yield city
