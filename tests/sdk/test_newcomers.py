"""What somebody does who uses nearcast for the first time: each mistake gets one clear sentence."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager

import pytest

import nearcast
from nearcast import (
    Boolean,
    ChangeKind,
    ChangeReason,
    Circle,
    GeoObject,
    IdfTable,
    Reason,
    Rectangle,
    RefusedError,
    SubscriptionState,
    Tls,
    TopK,
    UnavailableError,
)
from nearcast.address import grpc_target
from tests.chaos.servers import ServerProcess
from tests.sdk.conftest import Place, refusal_of, until
from tests.support.identity import Authority, keys_in, token
from tests.support.ports import free_port

SUSHI = TopK({"sushi"}, k=3)
HERE = {"lon": 14.5, "lat": 35.5}
OBJECT = GeoObject({"sushi"}, **HERE, ttl_s=3600.0)


# -- where the server is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("localhost", "localhost:7433"),
        (" example.org:80\n", "example.org:80"),
        ("::1", "[::1]:7433"),
        ("unix:/run/nearcast.sock", "unix:/run/nearcast.sock"),
        ("dns:///localhost:7433", "dns:///localhost:7433"),
    ],
)
def test_an_address_has_the_usual_port(target, address):
    assert grpc_target(target) == address


@pytest.mark.parametrize(
    ("target", "limit"),
    [
        (
            "http://localhost:7433",
            (
                "HOST[:PORT] without http://, such as localhost:7433: it is gRPC, and tls=nearcast.Tls() "
                "for TLS"
            ),
        ),
        ("localhost:x", "HOST[:PORT] with a port from 1 to 65535, and not 'x'"),
        ("a/b", "HOST[:PORT], such as localhost or [::1]:7433"),
    ],
)
async def test_an_invalid_address_is_refused_with_a_reason(target, limit):
    with pytest.raises(RefusedError) as refused:
        async with nearcast.connect(target):
            pass
    assert str(refused.value) == f"target is {target!r}, must be {limit}"


async def test_every_first_call_raises_if_the_server_cannot_be_reached():
    """Nobody listens. A publisher that starts before the server says the same, in the same class."""
    async with nearcast.connect(f"127.0.0.1:{free_port()}") as client, client.fleet() as fleet:
        publisher = client.publisher()
        found = await asyncio.gather(
            client.status(),
            client.search(SUSHI, **HERE),
            client.sync(),
            client.advance_clock(1),
            client.forget_device("d"),
            client.inspect("d"),
            client.set_idf(IdfTable({"a": 1.0})),
            client.attach("d", **HERE),
            fleet.attach("e", **HERE),
            publisher.publish(OBJECT),
            publisher.retract(1),
            return_exceptions=True,
        )
    for one in found:
        assert type(one) is UnavailableError, repr(one)
        assert str(one).startswith("the server cannot be reached: UNAVAILABLE: "), repr(one)
        assert str(one).count("cannot be reached") == 1


@pytest.mark.parametrize("is_encrypted", [False, True])
async def test_tls_at_one_end_alone_is_given_a_hint(tmp_path, is_encrypted):
    """The server has what the client has not."""
    authority = Authority()
    chain, key = authority.issue()
    (tmp_path / "chain.pem").write_bytes(chain)
    (tmp_path / "key.pem").write_bytes(key)
    flags = {"tls_certificate": str(tmp_path / "chain.pem"), "tls_key": str(tmp_path / "key.pem")}
    place = Place(tmp_path / "store.db", **({} if is_encrypted else flags))
    await place.start()
    hint = (
        "does the server use TLS? If not, leave out tls="
        if is_encrypted
        else "does the server require TLS? Set tls=nearcast.Tls(...)"
    )
    tls = Tls(authority.pem) if is_encrypted else None
    try:
        async with nearcast.connect(place.target, tls=tls) as client:
            for call in (client.status(), client.attach("d", **HERE), client.publisher().publish(OBJECT)):
                with pytest.raises(UnavailableError) as failed:
                    await call
                assert str(failed.value).endswith(f"; {hint}")
                assert failed.value.hint == hint
    finally:
        await place.stop()


async def test_a_connection_that_breaks_is_given_no_hint(proxy, far):
    await far.status()
    proxy.stall()
    asking = asyncio.create_task(far.status())
    await asyncio.sleep(0)
    proxy.is_open = False
    proxy.cut()
    with pytest.raises(UnavailableError) as failed:
        await asking
    assert failed.value.hint == ""


# -- who one is ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_provider", [False, True])
async def test_a_token_as_a_file_has_it(tmp_path, is_provider):
    place = Place(tmp_path / "store.db", jwks=str(keys_in(tmp_path)))
    await place.start()
    text = f"{token('d', 'device')}\n"
    try:
        async with nearcast.connect(
            place.target, token=(lambda: text) if is_provider else text
        ) as client:
            await client.attach("d", **HERE)
    finally:
        await place.stop()


async def test_a_token_that_is_none_does_not_travel(place):
    async with nearcast.connect(place.target, token=lambda: "geheim\nzeile") as client:
        with pytest.raises(UnavailableError, match="printable ASCII characters on one line") as failed:
            await client.status()
    assert type(failed.value) is UnavailableError
    assert "geheim" not in str(failed.value)


async def test_a_replaced_instance_raises(place, client):
    old = await client.attach("d", **HERE)
    async with nearcast.connect(place.target) as other:
        await other.attach("d", **HERE, take_over=True)
        refused = await refusal_of(old)
    assert str(refused) == "another instance of the device took over; this one is closed"
    assert refused.reason is Reason.SUPERSEDED


# -- what is asked for ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            TopK({"sushi"}, k=0),
            ("spec.top_k.k is 0, must be a whole number, 1 to the k_max of the server (100 by default)"),
        ),
        (
            Boolean("sushi", Circle(100.0)),
            (
                "spec.boolean.circle.center is None, must be given: Circle(radius_m, center=(lon, lat)); "
                "or moving=True for a circle around the device"
            ),
        ),
        (
            Boolean("sushi", Rectangle(100.0, 100.0)),
            (
                "spec.boolean.rectangle.bounds is None, must be Bounds, which are fixed in place; or "
                "moving=True for a rectangle around the device"
            ),
        ),
    ],
)
async def test_an_incomplete_spec_is_an_error_with_the_field(client, spec, message):
    async with await client.attach("d", **HERE) as device:
        for call in (device.subscribe(spec), device.search(spec), client.search(spec, **HERE)):
            with pytest.raises(RefusedError) as refused:
                await call
            assert str(refused.value) == message


async def test_changes_and_states_compare_with_texts_too(client):
    device = await client.attach("d", **HERE)
    subscription = await device.subscribe(SUSHI)
    await client.publisher().publish(OBJECT)
    await client.sync()
    change = await anext(subscription.changes())
    assert change.kind == "entered"
    assert change.kind is ChangeKind.ENTERED
    assert f"{change.kind}, {change.reason}" == "entered, subscribed"
    assert change.reason is ChangeReason.SUBSCRIBED
    assert ChangeReason.OUT_OF_WINDOW == "out of window"
    assert subscription.state == "exact"
    assert subscription.state is SubscriptionState.EXACT


# -- a search of a device without a server -------------------------------------------------------


@asynccontextmanager
async def process(folder):
    server = ServerProcess(folder, virtual_time=False)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest.mark.processes
@pytest.mark.parametrize("is_frozen", [False, True])
async def test_a_search_of_a_device_is_given_up(tmp_path, is_frozen):
    async with process(tmp_path) as server, nearcast.connect(server.target) as client:
        await client.publisher().publish(OBJECT)
        device = await client.attach("d", **HERE)
        kept = await device.subscribe(SUSHI)
        assert len(await device.search(SUSHI)) == 1
        if is_frozen:
            server.pause()
        else:
            await server.stop()
            await until(lambda: kept.state is SubscriptionState.OFFLINE)
        async with asyncio.timeout(60.0):
            with pytest.raises(UnavailableError, match=r"^the server cannot be reached: it has not"):
                await device.search(SUSHI)
            cancelled = asyncio.create_task(device.search(SUSHI))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        assert device.subscriptions == [kept]
        if is_frozen:
            server.go_on()
        else:
            await server.start()
        await until(lambda: kept.state is SubscriptionState.EXACT)
        assert len(await device.search(SUSHI)) == 1
        await client.sync()
        assert len((await client.inspect("d"))["subscriptions"]) == 1, "the server knows that they ended"


async def test_a_search_waits_for_a_server_that_comes_back(place, client, monkeypatch):
    """The time counts while the server is away only, and from the beginning each time."""
    monkeypatch.setattr("nearcast.protocol.subscription._PATIENCE_S", 3600.0)
    await client.publisher().publish(OBJECT)
    device = await client.attach("d", **HERE)
    await place.stop()
    searching = asyncio.create_task(device.search(SUSHI))
    await until(lambda: device.subscriptions)
    assert device.subscriptions[0].state is SubscriptionState.OFFLINE_STALE
    await place.start()
    assert len(await searching) == 1


async def cancelled(place, *, is_changing):
    """Cancel what waits for a server that is away."""
    async with nearcast.connect(place.target) as client:
        device = await client.attach("d", **HERE)
        if is_changing:
            await device.subscribe(SUSHI, name="lunch")
        await place.stop()
        await until(lambda: not device.is_online)
        tasks = [
            asyncio.create_task(device.subscribe(TopK({"tea"}), name="lunch")),
            asyncio.create_task(device.subscribe(TopK({"tea"}))),
            asyncio.create_task(device.search(SUSHI)),
        ]
        await until(lambda: len(device.subscriptions) == 3)
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("is_changing", [False, True])
async def test_what_was_cancelled_leaves_no_trace_in_the_log(place, is_changing):
    logged = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    await cancelled(place, is_changing=is_changing)
    gc.collect()
    assert not logged
    await place.start()
