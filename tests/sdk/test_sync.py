"""The synchronous client against a server in another process: blocking calls, iterators, the ends."""

from __future__ import annotations

import asyncio
import inspect
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

import nearcast
import nearcast.sync
import nearcast_server
from nearcast import (
    ChangeKind,
    ClosedError,
    GeoObject,
    IdfTable,
    Reason,
    RefusedError,
    SubscriptionState,
    TopK,
    UnavailableError,
)
from nearcast.sync.loop_thread import LoopThread
from tests.support.ports import free_port

pytestmark = pytest.mark.processes

HERE = {"lon": 14.5, "lat": 35.5}


@pytest.fixture(scope="module")
def server():
    with nearcast_server.serve((14, 35, 15, 36)) as server:
        yield server


@pytest.fixture
def client(server):
    with nearcast.sync.connect(server.address) as client:
        yield client


@pytest.fixture
def word():
    """A keyword, and the id of a device, that no other test uses."""
    return f"word-{secrets.token_hex(4)}"


@pytest.fixture
def silent():
    """The address of a port that accepts connections and never sends anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def nothing():
    pass


def of(word, lon=14.5, **fields):
    return GeoObject({word}, lon, 35.5, 3600.0, **fields)


# -- it is the asyncio client ----------------------------------------------------------------------


def test_a_device_gets_its_result_and_keeps_it(client, word):
    with client.publisher() as publisher:
        near, far = publisher.publish([of(word, 14.51), of(word, 14.6, key=word)])
    device = client.attach(word, **HERE)
    spec = TopK({word}, k=5, alpha=0.9)
    offers = device.subscribe(spec, name="offers")
    assert (offers.name, offers.spec, offers.error, offers.idf_generation) == ("offers", spec, None, 0)
    assert offers.state is SubscriptionState.EXACT
    assert [match.object.id for match in offers.results()] == [near, far]
    device.move(lon=14.6, lat=35.5)
    client.sync()
    assert [match.object.id for match in offers.results()] == [far, near]
    assert offers.results() == device.search(spec) == client.search(spec, lon=14.6, lat=35.5)
    assert device.subscribe(spec, name="offers") == offers
    assert device.subscriptions == [offers]
    assert {offers} == {*device.subscriptions}
    assert device.counters.moves == 1
    assert device.geofence().radius_m == offers.geofence().radius_m > 0.0
    assert device.frame.area.lon_min == 14.0
    assert (device.id, offers.id) == (word, 1)
    client.publisher().retract(near, key=word)
    client.sync()
    assert offers.results() == []
    offers.unsubscribe()
    assert offers.state is SubscriptionState.ENDED
    assert device.forget() == 0


def test_what_operators_ask(client, word):
    status = client.status()
    assert status.state is nearcast.ServerState.SERVING
    client.publisher().publish(of(word, key=word))
    assert client.inspect(object_key=word)["object"]["key"] == word
    with client.attach(word, **HERE) as device:
        device.subscribe(TopK({word}))
        assert status.time_ms <= client.now_ms()
    client.network_changed()
    assert client.set_idf(IdfTable({word: 1.0})) > 0
    assert client.forget_device(word) == 1


def test_a_fleet(client, word):
    client.publisher().publish(of(word))
    with client.fleet() as fleet:
        devices = [fleet.attach(f"{word}-{i}", **HERE) for i in range(3)]
        found = [device.subscribe(TopK({word})).results() for device in devices]
    assert [len(one) for one in found] == [1, 1, 1]
    with pytest.raises(ClosedError):
        devices[0].move(**HERE)


def test_virtual_time(word):
    area = (14, 35, 15, 36)
    with (
        nearcast_server.serve(area, virtual_time=True) as server,
        nearcast.sync.connect(server.address) as client,
    ):
        start_ms = client.status().time_ms
        client.publisher().publish(GeoObject({word}, **HERE, ttl_s=60))
        offers = client.attach(word, **HERE).subscribe(TopK({word}))
        client.advance_clock(start_ms + 59_999)
        assert len(offers.results()) == 1
        client.advance_clock(start_ms + 60_000)
        assert offers.results() == []
        assert client.now_ms() == start_ms + 60_000


async def test_it_works_beside_a_running_event_loop(server, word):
    """As in a notebook, whose cells run on a loop."""
    with nearcast.sync.connect(server.address) as client:
        client.publisher().publish(of(word))
        assert len(client.search(TopK({word}), **HERE)) == 1


def test_threads_may_share_a_client(client, word):
    publisher = client.publisher()
    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(lambda i: publisher.publish(of(word, 14.5 + i / 1000))[0], range(40)))
    found = client.search(TopK({word}, k=100), **HERE)
    assert {match.object.id for match in found} == set(ids)


async def test_event_loops_of_several_clients_do_not_disturb_each_other(server, word, caplog):
    """gRPC shares one queue of events among the loops of a process."""

    def publish(client):
        with client.publisher() as publisher:
            return [publisher.publish(of(word))[0] for _ in range(100)]

    with (
        nearcast.sync.connect(server.address) as first,
        nearcast.sync.connect(server.address) as second,
    ):
        blocking = [asyncio.to_thread(publish, one) for one in (first, second, first)]
        async with nearcast.connect(server.address) as client, client.publisher() as publisher:
            found = asyncio.gather(*blocking)
            own = [(await publisher.publish(of(word)))[0] for _ in range(100)]
        ids = [*own, *(one for part in await found for one in part)]
    assert len(set(ids)) == 400
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


INSIDE = {"clock", "pass_time", "check_placement", "rebuild", "region"}
"""Members of the asyncio classes for the SDK itself and for tools, or that a call replaces."""


@pytest.mark.parametrize("name", ["Client", "Device", "Fleet", "Publisher", "Subscription"])
def test_each_class_has_the_members_of_its_namesake(name):
    model, blocking = getattr(nearcast, name), getattr(nearcast.sync, name)
    for member in {one for one in dir(model) if not one.startswith("_")} - INSIDE:
        there, here = getattr(model, member), getattr(blocking, member)
        assert inspect.getdoc(here), member
        if callable(there):
            mine = dict(inspect.signature(here).parameters)
            limit = mine.pop("timeout_s", None)
            assert limit is None or member in {"changes", "states"}
            assert mine == dict(inspect.signature(there).parameters), member
    for attribute in inspect.get_annotations(model):
        assert attribute in INSIDE or hasattr(blocking, attribute)


def test_connect_has_the_parameters_of_its_namesake():
    mine = dict(inspect.signature(nearcast.sync.connect).parameters)
    assert mine.pop("timeout_s").default is None
    assert mine == dict(inspect.signature(nearcast.connect).parameters)


def test_it_prints_as_what_it_is(client, server, word):
    device = client.attach(word, **HERE)
    offers = device.subscribe(TopK({word}, k=3), name="offers")
    assert repr(client) == f"<nearcast.sync.Client of '{server.address}'>"
    assert repr(client.publisher()) == f"<nearcast.sync.Publisher to '{server.address}'>"
    assert repr(device) == f"<nearcast.sync.Device '{word}', subscriptions: 1, online>"
    assert repr(offers).startswith("<nearcast.sync.Subscription 1 'offers', exact: TopK(keywords={'")
    with client.fleet() as fleet:
        assert repr(fleet) == "<nearcast.sync.Fleet, devices: 0>"
    client.close()
    assert repr(client) == f"<nearcast.sync.Client of '{server.address}', closed>"


# -- iterators -------------------------------------------------------------------------------------


def test_changes_are_iterated_with_for(client, word):
    publisher = client.publisher()
    offers = client.attach(word, **HERE).subscribe(TopK({word}))
    seen = []
    publisher.publish(of(word, key="0"))
    for change in offers.changes():
        seen.append((change.kind, change.object.key))
        if len(seen) < 3:
            publisher.publish(of(word, 14.5 + len(seen) / 100, key=str(len(seen))))
        elif len(seen) == 3:
            publisher.retract(key="0")
        else:
            break
    assert seen[:3] == [(ChangeKind.ENTERED, key) for key in "012"]
    assert seen[3] == (ChangeKind.LEFT, "0")


def test_an_iterator_ends_when_nothing_comes(client, word):
    offers = client.attach(word, **HERE).subscribe(TopK({word}))
    assert list(offers.changes(timeout_s=0.01)) == []
    assert set(offers.states(timeout_s=0.01)) <= {SubscriptionState.EXACT}
    for wrong in (0, -1, "1", float("nan")):
        with pytest.raises(RefusedError, match="timeout_s"):
            offers.changes(timeout_s=wrong)


def test_an_iterator_ends_with_its_subscription(client, word):
    client.publisher().publish(of(word))
    offers = client.attach(word, **HERE).subscribe(TopK({word}))
    changes, states = offers.changes(), offers.states()
    assert next(changes).kind is ChangeKind.ENTERED
    assert next(states) is SubscriptionState.EXACT
    offers.unsubscribe()
    assert list(changes) == []
    assert list(states) == [SubscriptionState.ENDED]


def test_an_iterator_that_is_left_leaves_nothing_behind(client, word):
    client.publisher().publish(of(word))
    offers = client.attach(word, **HERE).subscribe(TopK({word}))
    for _ in range(3):
        assert len(list(islice(offers.changes(), 1))) == 1
    client.status()  # what was submitted before has been done
    assert client._loop.call(lambda: len(offers._subscription._watchers)) == 0  # noqa: SLF001 - nothing public counts them


# -- errors ----------------------------------------------------------------------------------------


def test_errors_are_those_of_the_sdk(client, word):
    with pytest.raises(RefusedError) as refused:
        client.search(TopK(set()), **HERE)
    assert refused.value.field == "spec.top_k.keywords"
    with client.attach(word, **HERE), pytest.raises(RefusedError) as refused:
        client.attach(word, **HERE, wait_s=0)
    assert refused.value.reason is Reason.DEVICE_IN_USE
    with (
        nearcast.sync.connect(f"127.0.0.1:{free_port()}") as other,
        pytest.raises(UnavailableError, match="is a server running at this address"),
    ):
        other.publisher().publish(of(word))
    with pytest.raises(RefusedError, match="target"):
        nearcast.sync.connect("http://localhost")


def test_a_call_that_takes_too_long(silent):
    with nearcast.sync.connect(silent, timeout_s=0.05) as client:
        with pytest.raises(TimeoutError, match=r"^the call took longer than 0\.05 s$"):
            client.status()
        client.timeout_s = 0.02
        with pytest.raises(TimeoutError, match=r"longer than 0\.02 s"):
            client.attach("d", **HERE)
        for wrong in (0, -1, "1", float("inf")):
            with pytest.raises(RefusedError, match="timeout_s"):
                client.timeout_s = wrong
            with pytest.raises(RefusedError, match="timeout_s"):
                nearcast.sync.connect(silent, timeout_s=wrong)
        assert client.timeout_s == 0.02
    assert not [one for one in threading.enumerate() if one.name == "nearcast"]


def test_an_error_of_this_class_that_is_the_calls_own():
    loop = LoopThread(timeout_s=60)

    async def failing():
        raise TimeoutError("of the call")

    with pytest.raises(TimeoutError, match="of the call"):
        loop.run(failing)
    loop.close(nothing)


def test_a_function_that_the_client_calls_cannot_call_it(server):
    def token():
        return str(client.status())

    with (
        nearcast.sync.connect(server.address, token=token) as client,
        pytest.raises(UnavailableError, match="RuntimeError"),
    ):
        client.status()
    loop = LoopThread()
    with pytest.raises(RuntimeError, match="a function that the client calls cannot call the client"):
        loop.call(lambda: loop.run(nothing))
    loop.close(nothing)


# -- the end ---------------------------------------------------------------------------------------


def test_after_close(server, word):
    client = nearcast.sync.connect(server.address)
    publisher = client.publisher()
    publisher.publish(of(word))
    device = client.attach(word, **HERE)
    offers = device.subscribe(TopK({word}))
    unread = offers.changes()
    client.close()
    client.close()
    assert len(offers.results()) == 1, "it shows what it showed"
    assert offers.state is SubscriptionState.ENDED
    assert isinstance(offers.error, ClosedError)
    assert list(unread) == list(offers.states()) == []
    device.detach()
    offers.unsubscribe()
    publisher.close()
    for call in (client.status, client.publisher, client.sync, device.geofence, client.fleet().__enter__):
        with pytest.raises(ClosedError) as closed:
            call()
        assert closed.value.hint
    assert not [one for one in threading.enumerate() if one.name == "nearcast"]


def test_close_ends_what_other_threads_wait_for(server, silent, word):
    client = nearcast.sync.connect(server.address)
    offers = client.attach(word, **HERE).subscribe(TopK({word}))
    client.publisher().publish(of(word))
    other = nearcast.sync.connect(silent)
    with ThreadPoolExecutor(3) as threads:
        changes = offers.changes()
        next(changes)  # the iterator has begun
        rest = threads.submit(list, changes)
        states = threads.submit(list, offers.states())
        waiting = threads.submit(other.status)
        client.close()
        other.close()
        assert rest.result() == []
        states.result()  # it ends; which states it still showed depends on when it started
        with pytest.raises(ClosedError):
            waiting.result()


def test_a_fork_does_not_wait_for_the_thread_that_it_lacks():
    loop = LoopThread()
    child = os.fork()
    if child == 0:
        try:
            loop.run(nothing)
        except ClosedError:
            os._exit(7)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    loop.close(nothing)
    assert os.waitstatus_to_exitcode(status) == 7


PROGRAM = """
import signal
import sys
import nearcast.sync
from nearcast import TopK

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
client = nearcast.sync.connect(sys.argv[1])
offers = client.attach(sys.argv[2], lon=14.5, lat=35.5).subscribe(TopK({sys.argv[2]}))
"""
WAITING = """
try:
    print("waiting", flush=True)
    for change in offers.changes():
        pass
except KeyboardInterrupt:
    print("interrupted", client.status().state.name)
"""


def started(program, *arguments):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_interrupts_a_wait_and_the_client_goes_on(server, word):
    process = started(PROGRAM + WAITING, server.address, word)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("interrupted SERVING\n", "")
    assert process.returncode == 0


def test_ctrl_c_before_a_call_is_handed_over_loses_no_coroutine(monkeypatch, recwarn):
    """Python warns of a coroutine that nothing has awaited."""

    def interrupted(*_):
        raise KeyboardInterrupt

    async def items():
        yield 1

    loop = LoopThread()
    with monkeypatch.context() as patch:
        patch.setattr("nearcast.sync.loop_thread._Loop.call_soon_threadsafe", interrupted)
        for call in (lambda: loop.run(nothing), lambda: next(loop.iterate(items(), None))):
            with pytest.raises(KeyboardInterrupt):
                call()
    loop.close(nothing)
    assert not [one for one in recwarn if "never awaited" in str(one.message)]


def test_ctrl_c_in_another_thread_interrupts_a_wait(server, word):
    """As one that arrives just before the wait: nothing wakes the waiting thread."""
    blocked = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
    process = started(PROGRAM + blocked + WAITING, server.address, word)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("interrupted SERVING\n", "")


def test_a_program_that_ends_without_closing_detaches_its_devices(server, client, word):
    process = started(PROGRAM, server.address, word)
    assert process.communicate() == ("", "")
    assert process.returncode == 0
    with client.attach(word, **HERE, wait_s=0) as device:
        assert len(device.subscriptions) == 1
