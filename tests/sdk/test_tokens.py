"""Tokens in the SDK: asked for when a call begins, renewed when they end, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import nearcast
from identity.issuer import Issuer
from nearcast import GeoObject, Reason, RefusedError, SubscriptionState, TopK, UnavailableError
from tests.sdk.conftest import PATIENCE_S, Place, refusal_of, until
from tests.support.identity import ISSUER, keys_in, token

SUSHI = TopK({"sushi"}, k=3)


def sushi(lon=14.5):
    return GeoObject({"sushi"}, lon, 35.5, ttl_s=3600.0)


@contextlib.asynccontextmanager
async def a_place(tmp_path, **flags):
    place = Place(tmp_path / "store.db", jwks=str(keys_in(tmp_path)), token_skew_s=0.0, **flags)
    await place.start()
    try:
        yield place
    finally:
        await place.stop()


class Provider:
    """Gives tokens that are good for a while, and counts them."""

    def __init__(self, *roles, ttl_s=1.0, name="name"):
        self.roles, self.ttl_s, self.name = roles, ttl_s, name
        self.count = 0

    def __call__(self):
        self.count += 1
        return token(self.name, *self.roles, ttl_s=self.ttl_s)

    async def later(self):
        await asyncio.sleep(0)
        return self()


@pytest.mark.parametrize("awaits", [False, True])
async def test_devices_and_publishers_continue_with_another_token(tmp_path, awaits):
    provider = Provider("gateway", "publisher")
    source = provider.later if awaits else provider
    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=source) as client:
        single = await client.attach("single", lon=14.5, lat=35.5)
        publisher = client.publisher()
        async with client.fleet() as fleet:
            one = await fleet.attach("one", lon=14.5, lat=35.5)
            subscriptions = [await device.subscribe(SUSHI) for device in (single, one)]
            before = provider.count
            await publisher.publish([sushi(14.51)])
            for _ in range(2):
                seen = provider.count
                await until(lambda seen=seen: provider.count >= seen + 2)  # both streams have ended
                await publisher.publish([sushi(14.50)])
            assert provider.count > before + 4
            for subscription in subscriptions:
                await until(lambda one=subscription: len(one.results()) == 3)


async def test_publishing_without_keys_loses_and_doubles_nothing_when_tokens_end(tmp_path):
    provider = Provider("publisher", ttl_s=1.0)
    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=provider) as client:
        publisher = client.publisher()
        ids = []
        while provider.count < 4:
            found = await asyncio.gather(*(publisher.publish([sushi()]) for _ in range(8)))
            ids += [one for some in found for one in some]
        assert len(set(ids)) == len(ids)
        assert len(place.server.coordinator.matching.objects) == len(ids)


async def test_a_token_that_ends_and_is_no_callable_ends_its_devices(tmp_path):
    async with a_place(tmp_path) as place:
        who = token("device", "device", ttl_s=4)  # more than it takes to attach on a busy machine
        async with nearcast.connect(place.target, token=who) as client:
            device = await client.attach("device", lon=14.5, lat=35.5)
            await device.subscribe(SUSHI)
            assert (await refusal_of(device)).reason is Reason.TOKEN_EXPIRED
            with pytest.raises(RefusedError, match="token"):
                await device.subscribe(SUSHI)


async def test_a_device_has_the_reason_while_its_token_function_returns_expired_tokens(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr("nearcast.protocol.subscription._PATIENCE_S", 0.2)
    provider = Provider("device", name="device")
    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=provider) as client:
        device = await client.attach("device", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SUSHI)
        provider.ttl_s = -1.0  # the next token has expired already
        async for state in subscription.states():
            if state is SubscriptionState.OFFLINE:
                break
        assert device.offline_error.reason is Reason.TOKEN_EXPIRED
        await until(lambda: provider.count >= 4)  # attempts with expired tokens
        assert not device.is_online
        assert device.offline_error.reason is subscription.offline_error.reason is Reason.TOKEN_EXPIRED
        warnings = [one.message for one in caplog.records if one.levelname == "WARNING"]
        assert any("token function" in message for message in warnings)
        with pytest.raises(UnavailableError, match="token") as failed:
            await subscription.exact_results()
        assert failed.value.__cause__.reason is Reason.TOKEN_EXPIRED
        provider.ttl_s = 60.0
        await until(lambda: device.is_online)
        assert device.offline_error is None


async def test_devices_that_were_online_wait_for_a_server_that_knows_their_tokens(tmp_path):
    """The keys are replaced, and the server has not read the new ones. Newcomers fail at once."""
    issuer, count = ISSUER, 0

    def source():
        nonlocal count
        count += 1
        return token("name", "gateway", by=issuer)

    async with (
        a_place(tmp_path) as place,
        nearcast.connect(place.target, token=source) as client,
        client.fleet() as fleet,
    ):
        device = await client.attach("device", lon=14.5, lat=35.5)
        one = await fleet.attach("one", lon=14.5, lat=35.5)
        subscriptions = [await each.subscribe(SUSHI) for each in (device, one)]
        issuer = Issuer()
        await client.network_changed()
        await until(lambda: isinstance(device.offline_error, RefusedError))
        await until(lambda: isinstance(one.offline_error, RefusedError))
        seen = count
        await until(lambda: count >= seen + 4)  # attempts of both streams
        for attach in (client.attach, fleet.attach):
            with pytest.raises(RefusedError) as refused:
                await attach("newcomer", lon=14.5, lat=35.5)
            assert refused.value.reason is Reason.UNAUTHENTICATED
        for each, subscription in zip((device, one), subscriptions, strict=True):
            assert each.offline_error.reason is Reason.UNAUTHENTICATED
            assert subscription.state is SubscriptionState.OFFLINE
        issuer = ISSUER
        await until(lambda: all(each.state is SubscriptionState.EXACT for each in subscriptions))


@pytest.mark.parametrize("is_fixed", [False, True])
async def test_devices_end_without_permission_and_with_a_fixed_unknown_token(tmp_path, is_fixed):
    roles = ["device"]
    fixed = token("device", "device")
    source = fixed if is_fixed else lambda: token("device", *roles)
    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=source) as client:
        device = await client.attach("device", lon=14.5, lat=35.5)
        roles[:] = ["publisher"]
        await place.stop()
        if is_fixed:
            keys_in(tmp_path, Issuer())
        await place.start()
        expected = Reason.UNAUTHENTICATED if is_fixed else Reason.PERMISSION_DENIED
        assert (await refusal_of(device)).reason is expected


@pytest.mark.parametrize("is_fleet", [False, True])
async def test_another_network_while_the_token_function_hangs(client, place, is_fleet):
    count = 0

    async def source():
        nonlocal count
        count += 1
        if count == 2:
            await asyncio.Event().wait()
        return "token"

    async with nearcast.connect(place.target, token=source) as far, far.fleet() as fleet:
        device = await (fleet if is_fleet else far).attach("device", lon=14.5, lat=35.5)
        await far.network_changed()
        await until(lambda: count == 2)
        if is_fleet:
            joining = asyncio.create_task(fleet.attach("another", lon=14.5, lat=35.5))
            await client.status()  # the other device has joined the stream by now
            assert count == 2, "it waits for the same token"
        assert not device.is_online
        await far.network_changed()
        await until(lambda: device.is_online)
        if is_fleet:
            assert (await joining).is_online
        assert count == 3


async def test_a_device_has_the_reason_while_its_token_function_fails(tmp_path):
    provider = Provider("device", name="device")
    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=provider) as client:
        device = await client.attach("device", lon=14.5, lat=35.5)
        provider.roles = None  # it raises from now on
        await until(lambda: isinstance(device.offline_error, UnavailableError))
        assert type(device.offline_error) is UnavailableError
        assert "no token is available" in str(device.offline_error)
        assert not device.is_online


async def test_a_device_outlives_a_cancelled_refresh_of_its_token(tmp_path):
    """An app shares a refresh among its calls; a timeout of another one cancels it."""
    provider = Provider("device", name="device")
    refresh = asyncio.get_running_loop().create_future()
    refresh.set_result(None)

    async def source():
        await refresh
        return provider()

    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=source) as client:
        device = await client.attach("device", lon=14.5, lat=35.5)
        subscription = await device.subscribe(SUSHI)
        done, refresh = refresh, asyncio.get_running_loop().create_future()
        refresh.cancel()
        await until(lambda: str(device.offline_error) == "no token is available: CancelledError")
        refresh = done
        await until(lambda: subscription.state is SubscriptionState.EXACT)


async def test_a_caller_that_is_cancelled_while_it_waits_for_a_token(tmp_path):
    waiting_count = 0

    async def source():
        nonlocal waiting_count
        waiting_count += 1
        await asyncio.Event().wait()

    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=source) as client:
        for act in (
            client.attach("device", lon=14.5, lat=35.5),
            client.publisher().publish([sushi()]),
            client.search(SUSHI, lon=14.5, lat=35.5),
        ):
            before = waiting_count
            task = asyncio.create_task(act)
            await until(lambda before=before: waiting_count > before)
            task.cancel()
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(asyncio.CancelledError):
                    await task


@pytest.mark.parametrize("failure", [ValueError, asyncio.CancelledError])
async def test_a_failing_provider_raises_and_its_text_is_not_repeated(tmp_path, failure):
    def provider():
        raise failure("secret")

    async with a_place(tmp_path) as place, nearcast.connect(place.target, token=provider) as client:
        for act in (
            client.attach("device", lon=14.5, lat=35.5),
            client.publisher().publish([sushi()]),
            client.search(SUSHI, lon=14.5, lat=35.5),
        ):
            async with asyncio.timeout(PATIENCE_S):
                with pytest.raises(UnavailableError, match="no token is available") as failed:
                    await act
            assert "secret" not in str(failed.value)


async def test_a_forbidden_caller_gets_an_error_and_does_not_retry_for_ever(tmp_path):
    async with a_place(tmp_path) as place:
        async with nearcast.connect(place.target, token=token("shop", "publisher")) as client:
            with pytest.raises(RefusedError) as refused:
                await client.attach("device", lon=14.5, lat=35.5)
            assert refused.value.reason is Reason.PERMISSION_DENIED
        async with nearcast.connect(place.target, token=token("thief", "device")) as client:
            with pytest.raises(RefusedError) as refused:
                await client.attach("device", lon=14.5, lat=35.5)
            assert (refused.value.reason, refused.value.field) == (
                Reason.PERMISSION_DENIED,
                "hello.device_id",
            )
            with pytest.raises(RefusedError) as refused:
                await client.sync()
            assert refused.value.reason is Reason.PERMISSION_DENIED


async def test_a_hint_when_to_try_again_is_heeded(tmp_path):
    """A burst is ten seconds' worth; what is beyond is published, later, by itself."""
    who = token("shop", "publisher")
    async with (
        a_place(tmp_path, publisher_rate=80.0) as place,
        nearcast.connect(place.target, token=who) as client,
    ):
        publisher = client.publisher()
        rejected = place.server.coordinator.counters.rejected
        for _ in range(3):  # the first request takes as long as the rate allows it on a very slow machine
            await publisher.publish(sushi() for _ in range(850))
            if rejected[Reason.RATE_LIMITED]:
                break
        found = await publisher.publish(sushi() for _ in range(5))
        assert len(found) == 5
        assert rejected[Reason.RATE_LIMITED] > 0
        await client.search(SUSHI, lon=14.5, lat=35.5)


async def test_a_device_waits_for_a_stream_of_its_own_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr("identity.setup.DEVICE_STREAMS_MAX", 1)
    monkeypatch.setattr("identity.quotas._STREAM_RETRY_MS", 50)
    async with a_place(tmp_path) as place:
        who = token("device", "device")
        async with (
            nearcast.connect(place.target, token=who) as first,
            nearcast.connect(place.target, token=who) as second,
        ):
            device = await first.attach("device", lon=14.5, lat=35.5)
            waiting = asyncio.create_task(second.attach("device", lon=14.5, lat=35.5))
            rejected = place.server.coordinator.counters.rejected
            await until(lambda: rejected[Reason.RATE_LIMITED] >= 2)
            await device.detach()
            assert (await waiting).id == "device"
