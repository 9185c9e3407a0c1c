"""What a developer sees of the SDK: clients without blocks, what things print as, hints of errors."""

from __future__ import annotations

import copy
import inspect
import pickle
import traceback

import pytest

import nearcast
from nearcast import ClosedError, GeoObject, Reason, RefusedError, TopK, UnavailableError
from nearcast.protocol.clock import Clock
from nearcast.transport.connection_hints import connection_hint
from tests.support.ports import free_port

HERE = {"lon": 14.5, "lat": 35.5}
TEA = GeoObject({"tea"}, **HERE, ttl_s=3600.0)


async def test_a_client_without_a_block(place):
    client = nearcast.connect(place.target)
    assert (await client.status()).state is nearcast.ServerState.SERVING
    assert repr(client) == f"<nearcast.Client of '{place.target}'>"
    await client.close()
    assert repr(client) == f"<nearcast.Client of '{place.target}', closed>"
    with pytest.raises(ClosedError) as closed:
        await client.status()
    assert closed.value.hint == "use it within its block, or connect and attach again"


def test_without_an_event_loop_it_names_the_other_client():
    with pytest.raises(RuntimeError, match=r"or use nearcast\.sync\.connect$"):
        nearcast.connect("localhost")


async def test_a_publisher_and_its_block(client, place):
    async with client.publisher() as publisher:
        assert repr(publisher) == f"<nearcast.Publisher to '{place.target}'>"
        await publisher.publish(TEA)
    assert repr(publisher) == f"<nearcast.Publisher to '{place.target}', closed>"
    with pytest.raises(ClosedError):
        await publisher.publish(TEA)
    assert len(await client.search(TopK({"tea"}), **HERE)) == 1


async def test_devices_and_subscriptions_print_as_what_they_are(client):
    async with client.fleet() as fleet:
        device = await fleet.attach("d", **HERE)
        spec = TopK({"tea"}, k=3)
        offers = await device.subscribe(spec, name="offers")
        other = await device.subscribe(spec)
        assert repr(fleet) == "<nearcast.Fleet, devices: 1>"
        assert repr(device) == "<nearcast.Device 'd', subscriptions: 2, online>"
        assert repr(offers) == f"<nearcast.Subscription 1 'offers', exact: {spec!r}>"
        await other.unsubscribe()
        assert repr(other) == f"<nearcast.Subscription 2, ended: {spec!r}>"
    assert repr(device).startswith("<nearcast.Device 'd', subscriptions: 1, ended: ClosedError(")


def test_a_subscription_shows_apps_its_public_half():
    members = {name for name in dir(nearcast.Subscription) if not name.startswith("_")}
    assert members == {
        "changes",
        "exact_results",
        "geofence",
        "offline_error",
        "os_regions",
        "results",
        "state",
        "states",
        "unsubscribe",
    }
    attributes = {*inspect.get_annotations(nearcast.Subscription)}
    assert attributes == {"spec", "idf_generation", "region"}


async def test_the_time_of_the_server(virtual):
    await virtual.advance_clock(5_000)
    assert virtual.now_ms() == 5_000


async def test_a_tls_setting_prints_without_its_files():
    tls = nearcast.Tls(root_certificates=b"-----BEGIN ROOTS", server_name="n.example.org")
    assert repr(tls) == "Tls(server_name='n.example.org')"


# -- errors ----------------------------------------------------------------------------------------


async def test_a_refusal_suggests_what_to_do(client):
    async with await client.attach("d", **HERE):
        with pytest.raises(RefusedError) as refused:
            await client.attach("d", **HERE, wait_s=0)
    hint = "end the other instance of the app, or replace it: attach(..., take_over=True)"
    assert refused.value.hint == hint
    assert traceback.format_exception(refused.value)[-1] == f"{hint}\n"
    assert hint not in str(refused.value)
    with pytest.raises(RefusedError) as refused:
        await client.search(TopK(set()), **HERE)
    assert refused.value.hint == "", "the message has the limit"


@pytest.mark.parametrize("call", ["search", "status"])
async def test_a_client_without_devices_knows_the_time_from_a_response(client, call):
    if call == "search":
        await client.search(TopK({"tea"}), **HERE)
    else:
        await client.status()
    known_ms = client.now_ms()
    assert abs(known_ms - (await client.status()).time_ms) < 60_000
    await client.attach("d", **HERE)
    assert client.now_ms() >= known_ms


async def test_the_time_of_the_server_of_a_device_counts_more_than_that_of_another():
    steady_ms = 1_000
    clock = Clock(lambda: steady_ms)
    clock.suggest(52_000)
    assert clock.now_ms() == 52_000
    clock.adjust(50_000, is_virtual=False)
    assert clock.now_ms() == 50_000
    clock.suggest(52_000)
    assert clock.now_ms() == 50_000


def test_a_refused_address_of_several_says_nothing_of_the_others():
    """gRPC tells of the last one that it has tried: of the other one TLS may be required."""
    report = "failed to connect to all addresses; last error: ipv6:%5B::1%5D:7433: Connection refused"
    for is_encrypted in (False, True):
        hint = connection_hint(report, is_encrypted=is_encrypted)
        assert hint == "is a server running at this address, with TLS at both ends or at neither?"
        only = report.replace("ipv6:%5B::1%5D", "ipv4:127.0.0.1")
        assert connection_hint(only, is_encrypted=is_encrypted) == "is a server running at this address?"


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_host_that_is_not_known_is_asked_about(is_encrypted):
    report = "errors resolving nohost:7433: [field:hostname lookup error:Domain name not found]"
    assert "name of the host" in connection_hint(report, is_encrypted=is_encrypted)


async def test_a_server_that_is_not_there_is_asked_about():
    async with nearcast.connect(f"127.0.0.1:{free_port()}") as client:
        with pytest.raises(UnavailableError) as failed:
            await client.status()
    assert failed.value.hint == "is a server running at this address?"
    assert str(failed.value).endswith(f"; {failed.value.hint}")


ERRORS = [
    *(RefusedError(reason, "field", "'value'", "a limit", "a sentence", 7) for reason in Reason),
    UnavailableError("no server", "a hint"),
    ClosedError("closed"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("copied", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_processes_can_send_errors_to_each_other(error, copied):
    again = copied(error)
    assert type(again) is type(error)
    assert (str(again), again.hint, vars(again)) == (str(error), error.hint, vars(error))
