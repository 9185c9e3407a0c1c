"""Watch: frames have what the server knows within a view, and the caller's tenant only."""

from __future__ import annotations

import asyncio
import contextlib
import random

import grpc
import pytest

from nearcast.v1 import (
    control_service_pb2,
    device_service_pb2,
    objects_pb2,
    publisher_service_pb2,
)
from server.limits import Limits
from tests.support.identity import bearer, token
from tests.wire.city import a_city, attach, publish
from tests.wire.conftest import served
from tests.wire.test_bad_input import a_spec, check_details

State = control_service_pb2.DeviceState
WORLD = {"lon_min": -180.0, "lat_min": -90.0, "lon_max": 180.0, "lat_max": 90.0}
TOWN = {"lon_min": 14.4, "lat_min": 35.4, "lon_max": 14.6, "lat_max": 35.6}
PATIENCE_S = 60.0
UNIT = 1e-7


class Watch:
    """A stream of frames, and the rows that its client has."""

    def __init__(self, call):
        self.call = call
        self.devices, self.objects, self.frames = {}, {}, []

    async def send(self, **fields):
        fields = {"view": WORLD, "interval_ms": 100, **fields}
        await self.call.write(control_service_pb2.WatchRequest(**fields))

    async def frame(self):
        """Return the next frame; apply its rows."""
        async with asyncio.timeout(PATIENCE_S):
            frame = await self.call.read()
        assert frame is not grpc.aio.EOF
        self.frames.append(frame)
        if frame.reset:
            self.devices, self.objects = {}, {}
        self._apply(frame)
        return frame

    def _apply(self, frame):
        devices, objects = frame.devices, frame.objects
        for number in devices.removed_numbers:
            del self.devices[number]
        columns = (
            devices.ids,
            devices.lon_e7,
            devices.lat_e7,
            devices.margin_m,
            devices.age_ms,
            devices.states,
        )
        self.devices |= dict(zip(devices.numbers, zip(*columns, strict=True), strict=True))
        for number in objects.removed_ids:
            del self.objects[number]
        columns = objects.lon_e7, objects.lat_e7, objects.age_ms, objects.left_ms
        self.objects |= dict(zip(objects.ids, zip(*columns, strict=True), strict=True))

    async def until(self, condition):
        """Return the first frame after which something holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.frame()
        return self.frames[-1]

    async def whole(self):
        """Return the next frame with which its client has all rows."""
        while (frame := await self.frame()).more:
            pass
        return frame

    def device_ids(self):
        return sorted(row[0] for row in self.devices.values())

    async def refused(self, reason, field):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await self._end()
        check_details(failed.value, reason, field)

    async def _end(self):
        async with asyncio.timeout(PATIENCE_S):
            while await self.call.read() is not grpc.aio.EOF:
                pass


@contextlib.contextmanager
def watching(stubs, who=""):
    call = stubs.control.Watch(metadata=bearer(who) if who else None)
    try:
        yield Watch(call)
    finally:
        call.cancel()


def thing(lon, lat, *keywords, ttl_ms=3_600_000):
    return objects_pb2.NewObject(
        position={"lon": lon, "lat": lat}, keywords=keywords or ["tea"], ttl_ms=ttl_ms
    )


async def post(stubs, *objects):
    """Publish on a server without tokens."""
    call = stubs.publishers.Publish()
    await call.write(publisher_service_pb2.PublishRequest(objects=objects))
    response = await call.read()
    await call.done_writing()
    return response


async def settled(stubs, **fields):
    """Return the rows of a new watcher."""
    with watching(stubs) as watch:
        await watch.send(**fields)
        await watch.whole()
        return watch


async def at(stubs, device_id, lon, lat, margin_m=0.0):
    """Attach a device; return its stream."""
    call = stubs.devices.Attach()
    place = {"position": {"lon": lon, "lat": lat}, "margin_m": margin_m}
    greeting = device_service_pb2.Hello(device_id=device_id, instance_nonce=b"one", **place)
    await call.write(device_service_pb2.AttachRequest(hello=greeting))
    assert (await call.read()).HasField("welcome")
    subscribe = {"subscription_id": 1, "spec": a_spec(), **place}
    await call.write(device_service_pb2.AttachRequest(subscribe=subscribe))
    assert (await call.read()).HasField("delta")
    return call


async def test_rows_have_positions_margins_and_ages(stubs):
    await at(stubs, "exact", 14.5, 35.5)
    await at(stubs, "private", 14.52, 35.48, margin_m=250.0)
    (number,) = (await post(stubs, thing(14.51, 35.51, ttl_ms=60_000))).ids
    watch = await settled(stubs)
    rows = {row[0]: row[1:] for row in watch.devices.values()}
    assert rows["exact"][:3] == (145_000_000, 355_000_000, 0.0)
    assert rows["private"][:3] == (145_200_000, 354_800_000, 250.0)
    assert {row[-1] for row in rows.values()} == {State.DEVICE_STATE_IN_SYNC}
    lon, lat, age_ms, left_ms = watch.objects[number]
    assert (lon, lat) == (145_100_000, 355_100_000)
    assert age_ms + left_ms == 60_000
    (frame,) = watch.frames
    assert (frame.reset, frame.sequence, frame.request_number) == (True, 1, 1)
    assert frame.frame.lon_min == 14.0
    assert (frame.devices.view_count, frame.devices.attached_count, frame.objects.count) == (2, 2, 1)


async def test_a_report_moves_a_row_and_silence_does_not(stubs, server):
    device = await at(stubs, "device", 14.5, 35.5)
    with watching(stubs) as watch:
        await watch.send()
        await watch.whole()
        assert not (await watch.frame()).devices.numbers
        (before,) = watch.devices
        await device.write(_report(1, 14.6))
        await watch.until(lambda: watch.devices[before][1] == 146_000_000)
        await device.done_writing()
        while await device.read() is not grpc.aio.EOF:
            pass
        frame = await watch.until(lambda: watch.devices[before][-1] == State.DEVICE_STATE_DETACHED)
        assert (frame.devices.attached_count, frame.devices.placed_count) == (0, 1)
        await stubs.devices.ForgetDevice(device_service_pb2.ForgetDeviceRequest(device_id="device"))
        frame = await watch.until(lambda: not watch.devices)
        assert frame.devices.placed_count == 0
    server.coordinator.check()


async def test_changes_add_up_to_what_is_in_the_view(stubs):
    """Random publications, retractions, reports and views, against a model."""
    rng = random.Random(5)
    devices = [await at(stubs, f"d{i}", 14.45 + i / 100, 35.5) for i in range(10)]
    lons = {f"d{i}": 14.45 + i / 100 for i in range(10)}
    live = {}
    with watching(stubs) as watch:
        for turn in range(12):
            places = [(rng.uniform(14.2, 14.8), rng.uniform(35.2, 35.8)) for _ in range(8)]
            ids = (await post(stubs, *(thing(*one) for one in places))).ids
            live |= dict(zip(ids, places, strict=True))
            gone = list(live)[:4]
            await stubs.publishers.Retract(publisher_service_pb2.RetractRequest(ids=gone))
            live = {number: place for number, place in live.items() if number not in gone}
            lons[f"d{turn % 10}"] = 14.3 + turn / 100
            await devices[turn % 10].write(_report(turn + 1, 14.3 + turn / 100))
            view = TOWN if turn % 4 < 2 else WORLD
            if turn % 2 == 0:
                await watch.send(view=view)
            objects = {number for number, place in live.items() if _is_in(view, *place)}
            placed = {name: lon for name, lon in lons.items() if _is_in(view, lon, 35.5)}
            await watch.until(
                lambda objects=objects, placed=placed: (
                    watch.objects.keys() == objects
                    and {row[0]: row[1] * UNIT for row in watch.devices.values()} == pytest.approx(placed)
                )
            )
    assert {frame.reset for frame in watch.frames} == {True, False}


def _is_in(view, lon, lat):
    return view["lon_min"] <= lon <= view["lon_max"] and view["lat_min"] <= lat <= view["lat_max"]


def _report(sequence, lon):
    report = device_service_pb2.Report(
        sequence=sequence, position={"lon": lon, "lat": 35.5}, subscription_ids=[1]
    )
    return device_service_pb2.AttachRequest(report=report)


async def test_a_view_a_keyword_and_a_chosen_device(stubs):
    await at(stubs, "inside", 14.5, 35.5)
    await at(stubs, "outside", 14.9, 35.9)
    await post(stubs, thing(14.5, 35.5, "tea"), thing(14.5, 35.5, "Café"), thing(14.9, 35.9, "tea"))
    watch = await settled(stubs, view=TOWN)
    assert watch.device_ids() == ["inside"]
    assert watch.objects.keys() == {1, 2}
    assert watch.frames[0].devices.placed_count == 2
    assert watch.frames[0].objects.count == 3
    assert (await settled(stubs, view=TOWN, device_id="outside")).device_ids() == ["inside", "outside"]
    assert (await settled(stubs, view=TOWN, device_id="nobody")).device_ids() == ["inside"]
    assert (await settled(stubs, keyword="CAFÉ")).objects.keys() == {2}
    assert not (await settled(stubs, keyword="juice")).objects


async def test_more_rows_than_a_frame_brings_follow_at_once(stubs):
    objects = [thing(14.0 + i / 5_000, 35.5) for i in range(4_500)]
    for first in range(0, 4_500, 900):
        await post(stubs, *objects[first : first + 900])
    watch = await settled(stubs, interval_ms=60_000)
    assert [len(one.objects.ids) for one in watch.frames] == [4_000, 500]
    assert len(watch.objects) == 4_500
    assert not watch.frames[-1].objects.thinned


async def test_thinned_rows_are_counted_by_cell(stubs):
    places = [(14.25 + 0.5 * (i % 2), 35.25 + 0.5 * (i % 4 == 3)) for i in range(40)]
    await post(stubs, *(thing(*one) for one in places))
    for i in range(4):
        await at(stubs, f"d{i}", 14.25, 35.25)
    area = {"lon_min": 14.0, "lat_min": 35.0, "lon_max": 15.0, "lat_max": 36.0}
    fields = {"view": area, "objects_max": 10, "devices_max": 3, "grid_columns": 2, "grid_rows": 2}
    with watching(stubs) as watch:
        await watch.send(**fields)
        frame = await watch.whole()
        assert (frame.objects.thinned, frame.objects.view_count, len(watch.objects)) == (True, 40, 10)
        assert (frame.devices.thinned, frame.devices.view_count, len(watch.devices)) == (True, 4, 3)
        assert list(frame.objects.density.counts) == [20, 10, 0, 10]
        assert list(frame.devices.density.counts) == [4, 0, 0, 0]
        for _ in range(3):  # the same ones are kept
            frame = await watch.frame()
            assert not frame.objects.ids
            assert not frame.devices.numbers
        await watch.send(**{**fields, "objects_max": 40, "devices_max": 4})
        await watch.until(lambda: watch.frames[-1].request_number == 2)
        frame = watch.frames[-1]
        assert not frame.objects.thinned
        assert not frame.devices.thinned
        assert not frame.objects.HasField("density")


async def test_expired_objects_leave():
    async with served(virtual_time=True) as stubs:
        await stubs.control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=1_000))
        await post(stubs, thing(14.5, 35.5, ttl_ms=5_000), thing(14.5, 35.5, ttl_ms=50_000))
        with watching(stubs) as watch:
            await watch.send()
            await watch.whole()
            assert [row[3] for _, row in sorted(watch.objects.items())] == [5_000, 50_000]
            await stubs.control.AdvanceClock(control_service_pb2.AdvanceClockRequest(time_ms=6_000))
            frame = await watch.until(lambda: len(watch.objects) == 1)
            assert list(frame.objects.removed_ids) == [1]


async def test_rates_compare_with_polling(stubs):
    with watching(stubs) as watch:
        await watch.send(polling_ms=500)
        await watch.whole()
        await at(stubs, "device", 14.5, 35.5)
        await post(stubs, thing(14.5, 35.5))
        frame = await watch.until(lambda: watch.frames[-1].rates.objects_published > 0.0)
        assert [one.name for one in frame.latencies if one.name == "publication_us"]
        frame = await watch.until(lambda: watch.frames[-1].rates.polling_reports > 0.0)
        assert frame.rates.polling_reports == 2.0
        assert frame.rates.reports_total == 0


async def test_nothing_crosses_between_tenants(tmp_path):
    async with a_city(tmp_path) as city:
        numbers = {}
        for tenant in ("", "acme", "other"):
            await attach(city, token("device", "device", tenant=tenant))
            who = token("shop", "publisher", tenant=tenant)
            (numbers[tenant],) = (await publish(city, who)).ids
        for tenant, number in numbers.items():
            with watching(city, token("one", "operator", tenant=tenant)) as watch:
                await watch.send(device_id="device", keyword="sushi")
                frame = await watch.whole()
                assert watch.device_ids() == ["device"]
                assert watch.objects.keys() == {number}
                assert (frame.objects.count, frame.devices.placed_count) == (1, 1)
                assert frame.HasField("rates") == (tenant == "")


@pytest.mark.parametrize("role", ["device", "gateway", "publisher"])
async def test_operators_only(tmp_path, role):
    async with a_city(tmp_path) as city:
        with watching(city, token("one", role)) as watch:
            await watch.refused("PERMISSION_DENIED", "token.roles")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"view": None}, "view"),
        ({"view": {**WORLD, "lon_min": float("nan")}}, "view.lon_min"),
        ({"view": {**WORLD, "lat_max": 91.0}}, "view.lat_max"),
        ({"view": {**TOWN, "lon_max": 14.4}}, "view.lon_min"),
        ({"interval_ms": 99}, "interval_ms"),
        ({"interval_ms": 60_001}, "interval_ms"),
        ({"devices_max": Limits().watch_devices_max + 1}, "devices_max"),
        ({"objects_max": -1}, "objects_max"),
        ({"grid_columns": 10}, "grid_rows"),
        ({"grid_columns": 1_000, "grid_rows": 1_000}, "grid_rows"),
        ({"keyword": "x" * 65}, "keyword"),
        ({"device_id": "x" * 129}, "device_id"),
        ({"device_id": "\x1f"}, "device_id"),
        ({"polling_ms": 3_600_001}, "polling_ms"),
    ],
)
async def test_a_view_has_bounds(stubs, fields, field):
    with watching(stubs) as watch:
        await watch.send()
        await watch.frame()
        await watch.send(**fields)
        await watch.refused("INVALID_FIELD", field)


async def test_a_stream_without_a_request_is_refused(stubs):
    with watching(stubs) as watch:
        await watch.call.done_writing()
        await watch.refused("INVALID_FIELD", "request")


async def test_the_stream_continues_after_a_half_close(stubs):
    with watching(stubs) as watch:
        await watch.send()
        await watch.call.done_writing()
        for _ in range(3):
            await watch.frame()


async def test_the_number_of_watchers_is_bounded():
    async with served(Limits(watchers_max=1)) as stubs:
        with watching(stubs) as watch:
            await watch.send()
            await watch.frame()
            with watching(stubs) as other:
                await other.refused("RATE_LIMITED", "streams")
        await _until_nobody_watches(stubs.server)
        assert (await settled(stubs)).frames


async def test_the_number_of_watchers_of_a_tenant_is_bounded(tmp_path):
    async with a_city(tmp_path) as city:
        who = token("one", "operator", tenant="acme")
        with contextlib.ExitStack() as streams:
            for _ in range(Limits().tenant_watchers_max):
                watch = streams.enter_context(watching(city, who))
                await watch.send()
                await watch.frame()
            await streams.enter_context(watching(city, who)).refused("RATE_LIMITED", "streams")
            other = streams.enter_context(watching(city, token("one", "operator", tenant="other")))
            await other.send()
            await other.frame()


async def test_nothing_is_kept_when_nobody_watches(stubs, server):
    await at(stubs, "device", 14.5, 35.5)
    devices = server.listener.control.watching._devices  # noqa: SLF001
    assert devices.end == 0
    with watching(stubs) as watch:
        await watch.send()
        await watch.frame()
        assert devices.end == 1
    await _until_nobody_watches(server)
    assert devices.end == 0


async def _until_nobody_watches(server):
    async with asyncio.timeout(PATIENCE_S):
        while server.listener.control.watching._streams:  # noqa: ASYNC110, SLF001 - no event
            await asyncio.sleep(0.01)


async def test_a_server_that_stops_ends_the_streams():
    async with served() as stubs:
        with watching(stubs) as watch:
            await watch.send()
            await watch.frame()
            stopping = asyncio.create_task(stubs.server.listener.drain(0.0))
            await watch.refused("DRAINING", "server")
            await stopping


async def test_a_token_that_expires_ends_the_stream(tmp_path):
    async with a_city(tmp_path, token_skew_s=0.0) as city:
        for ttl_s in (1, 2, 4, 8, 16, 32):  # a busy machine may need a longer one to start
            with watching(city, token("one", "operator", ttl_s=ttl_s)) as watch:
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await watch.send()
                    await watch.frame()
                await watch.refused("TOKEN_EXPIRED", "token.exp")
            if watch.frames:
                return
        raise AssertionError("no stream has started")
