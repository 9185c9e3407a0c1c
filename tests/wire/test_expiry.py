"""Streams end when the token ends with which they began."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import pytest

from identity import expiry
from nearcast.v1 import control_service_pb2, publisher_service_pb2
from tests.support.identity import SHORT_S, bearer, token
from tests.wire.city import a_city, attach, publish, reason_of, refused
from tests.wire.conftest import stubs_on
from tests.wire.test_bad_input import an_object, hello
from tests.wire.test_unread import account_of
from tests.wire.test_watch import WORLD


async def test_a_stream_of_a_device_ends_with_its_token(tmp_path):
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        who = token("device", "device", ttl_s=SHORT_S)
        polite, _ = await attach(city, who, "device")
        away = (await polite.read()).go_away
        assert reason_of(away.error) == "TOKEN_EXPIRED"
        await polite.done_writing()
        assert await polite.read() is grpc.aio.EOF
        await refused(city.devices.Attach(metadata=bearer(who)).read(), "TOKEN_EXPIRED", "token.exp")
        assert "device" not in city.server.coordinator.sessions


@pytest.mark.parametrize("method", ["Attach", "Publish"])
async def test_a_client_that_stays_when_its_token_expires_is_not_waited_for(
    tmp_path, monkeypatch, method
):
    monkeypatch.setattr(expiry, "_HALF_CLOSE_S", 0.2)
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        who = token("device", "device", "publisher", ttl_s=SHORT_S)
        stub = city.devices if method == "Attach" else city.publishers
        call = getattr(stub, method)(metadata=bearer(who))
        await call.write(hello() if method == "Attach" else publisher_service_pb2.PublishRequest())
        await call.read()
        assert reason_of((await call.read()).go_away.error) == "TOKEN_EXPIRED"
        async with asyncio.timeout(20):
            await call.code()  # it has ended, though nobody has half-closed


async def refused_requests(call):
    """Send requests whose responses are more than a client's windows take."""
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        for _ in range(2_000):
            await call.write(publisher_service_pb2.PublishRequest())


async def large_frames(call):
    await call.write(control_service_pb2.WatchRequest(view=WORLD, interval_ms=100, objects_max=20_000))


@pytest.mark.parametrize(("method", "send"), [("Publish", refused_requests), ("Watch", large_frames)])
async def test_a_stream_that_is_not_read_ends_with_its_token(tmp_path, monkeypatch, method, send):
    monkeypatch.setattr(expiry, "_HALF_CLOSE_S", 0.2)
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        for _ in range(8):
            assert (await publish(city, token("shop", "publisher"), *[an_object()] * 1_000)).ids
        options = [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 16_384)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{city.server.port}", options) as channel:
            stubs = stubs_on(channel)
            stub = stubs.publishers if method == "Publish" else stubs.control
            who = token("idle", "publisher", "operator", ttl_s=SHORT_S)
            call = getattr(stub, method)(metadata=bearer(who))
            sending = asyncio.create_task(send(call))
            account = await account_of(city, "idle", lambda one: one.stream_count == 1)
            await account_of(city, "idle", lambda one: one.stream_count == 0)
            assert account.used_us > 0.0
            assert not call.done(), "its client reads nothing"
            sending.cancel()
            call.cancel()


async def test_a_publish_stream_ends_with_its_token_and_reports_admitted_requests(tmp_path):
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        who = token("one", "publisher", ttl_s=SHORT_S)
        call = city.publishers.Publish(metadata=bearer(who))
        await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
        assert (await call.read()).ids
        away = (await call.read()).go_away
        assert (reason_of(away.error), away.admitted_count) == ("TOKEN_EXPIRED", 1)
        await call.write(publisher_service_pb2.PublishRequest(objects=[an_object()]))
        await call.done_writing()
        await refused(call.read(), "TOKEN_EXPIRED", "token.exp")
        assert len(city.server.coordinator.matching.objects) == 1
