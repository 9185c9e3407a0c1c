"""Positions, payloads, device ids and tokens reach no log, nor a token the answer to whoever shows it."""

from __future__ import annotations

import contextlib
import logging

import grpc
import pytest

import nearcast
from nearcast import Boolean, Circle, GeoObject, RefusedError, TopK
from nearcast.v1 import device_service_pb2, publisher_service_pb2
from tests.support.identity import bearer, keys_in, token
from tests.support.servers import serving
from tests.wire.conftest import settings
from tests.wire.test_bad_input import an_object, hello

LON, LAT = 14.567891, 35.432198
OUTSIDE = 77.654321
PAYLOAD = "PAYLOAD-7f3a"
DEVICE = "phone-5e1f"
PLACES = ("14.567891", "35.432198", "77.654321", "14.56789", "35.43219")


async def use(target, who):
    """Do all that there is, right and wrong."""
    async with nearcast.connect(target, token=who) as client:
        publisher = client.publisher()
        good = GeoObject({"sushi"}, LON, LAT, ttl_s=60.0, payload=PAYLOAD.encode(), key="key")
        (mine,) = await publisher.publish([good])
        for bad in (
            GeoObject({"sushi"}, OUTSIDE, LAT, ttl_s=60.0, payload=PAYLOAD.encode()),
            GeoObject({"sushi"}, LON, LAT, ttl_s=60.0, payload=PAYLOAD.encode() * 5_000),
            GeoObject({PAYLOAD * 20}, LON, LAT, ttl_s=60.0),
        ):
            with pytest.raises(RefusedError):
                await publisher.publish([bad])
        async with client.fleet() as fleet:
            device = await fleet.attach(DEVICE, lon=LON, lat=LAT)
            await device.subscribe(TopK({"sushi"}, k=2))
            await device.subscribe(Boolean({"sushi"}, Circle(500.0, (LON, LAT))))
            with pytest.raises(RefusedError):
                await device.subscribe(TopK({"sushi"}, k=10**6))
            await device.move(LON + 0.2, LAT, heading_deg=7.0, speed_mps=3.0)
            await client.search(TopK({"sushi"}), lon=LON, lat=LAT)
            with pytest.raises(RefusedError):
                await client.search(TopK({"sushi"}), lon=OUTSIDE * 10, lat=LAT)
            await client.sync()
            await client.inspect(DEVICE)
            with pytest.raises(RefusedError):
                await client.inspect(DEVICE, 99)
            await client.forget_device(DEVICE)
        await publisher.retract(mine)
        await client.status()


async def abuse(port, who):
    """Send what is none, and tokens where they do not belong."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stubs = [
            channel.stream_stream(f"/nearcast.v1.{method}")
            for method in ("DeviceService/Attach", "PublisherService/Publish", "ControlService/Status")
        ]
        metadata = [bearer(who), bearer(who[:-4]), (("authorization", who),), (("x-token", who),), ()]
        messages = [
            b"\xff\xff",
            hello().SerializeToString(),
            publisher_service_pb2.PublishRequest(objects=[an_object(key="k" * 200)]).SerializeToString(),
            device_service_pb2.AttachRequest(
                report=device_service_pb2.Report(position={"lon": OUTSIDE * 100, "lat": LAT})
            ).SerializeToString(),
        ]
        output = ""
        for stub in stubs:
            for one in metadata:
                for message in messages:
                    call = stub(metadata=one)
                    with contextlib.suppress(grpc.aio.AioRpcError):
                        await call.write(message)
                        await call.done_writing()
                        await call.read()
                    output += f"{await call.details()} {await call.trailing_metadata()}"
        return output


async def test_no_data_of_callers_is_logged_or_reported(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "SECRET-of-development-8c1d"  # noqa: S105
    flags = {"jwks": str(keys_in(tmp_path)), "tokens": [secret], "log_level": "DEBUG"}
    who = token("device", "gateway", "publisher", "operator")
    async with serving(settings(**flags)) as server:
        target = f"127.0.0.1:{server.port}"
        for one in (who, secret):
            await use(target, one)
            output = await abuse(server.port, one)
            assert "authorization" in output
            assert one not in output
            assert one[:-4] not in output
    logged = "\n".join(record.getMessage() + str(record.exc_text or "") for record in caplog.records)
    assert "serving on" in logged
    for text in (*PLACES, PAYLOAD, DEVICE, who, *who.split("."), secret):
        assert text not in logged
