"""HTTP with JSON: the calls of the server, with the same rights and the same errors."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import threading

import grpc
import pytest

from gateway import conversions, http_api
from gateway.calls import CALLS
from gateway.openapi import document, page
from identity.setup import DEVICE_CALLS_MAX
from nearcast.errors import Reason
from nearcast.v1 import errors_pb2, publisher_service_pb2, streams_pb2
from nearcast.wire.errors import CODES
from tests.gateway.intruder import raw
from tests.gateway.town import PATIENCE_S, a_town, until
from tests.support.identity import token
from tests.wire.test_go_away import held_commits

HERE = {"lon": 14.5, "lat": 35.5}
OBJECT = {"position": HERE, "keywords": ["sushi"], "ttl_ms": "60000"}
SEARCH = {"spec": {"top_k": {"keywords": ["sushi"], "k": 3, "alpha": 0.5}}, "position": HERE}
BODIES = {
    "publish": {"objects": [OBJECT]},
    "retract": {"ids": ["1"]},
    "search": SEARCH,
    "forget": {"device_id": "somebody"},
    "status": None,
    "inspect": {"device_id": "device"},
}


async def call(town, name, body=None, roles=("publisher",), headers=None, **claims):
    """Make a call; return its status and its content."""
    who = token("somebody", *roles, **claims)
    headers = {"Authorization": f"Bearer {who}", **(headers or {})}
    method = "GET" if name == "status" else "POST"
    options = {} if name == "status" else {"json": BODIES[name] if body is None else body}
    address = town.address(f"/v1/{name}")
    async with town.http.request(method, address, headers=headers, **options) as response:
        return response.status, await response.json(content_type=None)


async def test_publish_search_retract(town):
    payload = base64.b64encode(b"20 % off").decode()
    status, published = await call(town, "publish", {"objects": [{**OBJECT, "payload": payload}]})
    assert (status, list(published["ids"])) == (200, ["1"])
    status, found = await call(town, "search", roles=("device",))
    assert status == 200
    assert [one["object"]["id"] for one in found["matches"]] == ["1"]
    assert found["matches"][0]["object"]["payload"] == payload
    assert (await call(town, "retract"))[0] == 200
    assert (await call(town, "search"))[1]["matches"] == []
    status, problem = await call(town, "retract")
    assert (status, problem["reason"]) == (404, "UNKNOWN_OBJECT")


async def test_the_idempotency_key_is_the_key_of_the_object(town):
    headers = {"Idempotency-Key": "shop-7"}
    first, again = [await call(town, "publish", headers=headers) for _ in range(2)]
    assert first == again
    assert (await call(town, "search"))[1]["matches"][0]["object"]["key"] == "shop-7"
    for objects in ([OBJECT, OBJECT], [], [{**OBJECT, "key": "other"}]):
        status, problem = await call(town, "publish", {"objects": objects}, headers=headers)
        assert (status, problem["metadata"]["field"]) == (400, "Idempotency-Key")


async def test_an_object_belongs_to_the_caller_and_not_to_the_gateway(town):
    await call(town, "publish")
    who = token("another", "publisher")
    headers = {"Authorization": f"Bearer {who}"}
    address = town.address("/v1/retract")
    async with town.http.post(address, headers=headers, json=BODIES["retract"]) as response:
        assert response.status == 403
        assert (await response.json(content_type=None))["domain"] == "nearcast"


async def test_a_field_that_is_not_known_is_named_with_those_that_are(town):
    status, problem = await call(town, "publish", {"objects": [{"lon": 14.5, "lat": 35.5}]})
    assert (status, problem["reason"]) == (400, "INVALID_FIELD")
    assert 'no field named "lon" at "PublishRequest.objects[0]"' in problem["detail"]
    assert problem["detail"].endswith("Its fields: position, keywords, ttl_ms, payload, key, area")


async def test_a_problem_has_the_field_its_value_and_the_limit(town):
    wrong = {"objects": [{**OBJECT, "ttl_ms": "0"}]}
    headers = {"Authorization": f"Bearer {token('one', 'publisher')}"}
    async with town.http.post(town.address("/v1/publish"), json=wrong, headers=headers) as response:
        assert response.status == 400
        assert response.content_type == "application/problem+json"
        found = await response.json(content_type=None)
    assert found["type"] == "/v1/docs#INVALID_FIELD"
    assert found["status"] == 400
    assert found["metadata"]["field"] == "objects[0].ttl_ms"
    assert found["metadata"]["value"] == "0"
    assert found["metadata"]["limit"] in found["detail"]


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"nothing": 1}', "application/json", 400),
        (b'{"ids": ["x"]}', "application/json", 400),
        (b'{"ids": ["1"]}', "text/plain", 400),
        (b" " * (1024 * 1024 + 1), "application/json", 400),
        (b" " * (5 * 1024 * 1024), "application/json", 400),
    ],
)
async def test_bodies_that_are_no_requests(town, data, kind, status):
    headers = {"Authorization": f"Bearer {token('one', 'publisher')}", "Content-Type": kind}
    async with town.http.post(town.address("/v1/retract"), data=data, headers=headers) as response:
        assert response.status == status
        assert (await response.json(content_type=None))["reason"] == "INVALID_FIELD"


async def test_long_bodies_and_responses_are_converted_beside_the_event_loop(town, monkeypatch):
    threads = []

    def noted(convert):
        def run(*arguments):
            threads.append(threading.current_thread() is threading.main_thread())
            return convert(*arguments)

        return run

    for name in ("parsed", "_text"):
        monkeypatch.setattr(http_api, name, noted(getattr(http_api, name)))
    await call(town, "publish")
    assert threads == [True, True]
    await call(
        town, "publish", {"objects": [{**OBJECT, "keywords": ["sushi", f"k{i}"]} for i in range(90)]}
    )
    spec = {"top_k": {**SEARCH["spec"]["top_k"], "k": 90}}
    _, found = await call(town, "search", {**SEARCH, "spec": spec})
    assert len(found["matches"]) == 90
    assert threads[2:] == [False, True, True, False]


LONG = {**SEARCH, "spec": {"boolean": {"clauses": [{"required": ["sushi"]}] * 60, "moving": True}}}


def posted(body, *lines, who=("somebody", "device")):
    """The bytes of a search; lines replace the length of its body."""
    lines = lines or (f"Content-Length: {len(body)}",)
    head = ("POST /v1/search HTTP/1.1", "Host: gateway", f"Authorization: Bearer {token(*who)}")
    return "\r\n".join((*head, "Content-Type: application/json", *lines, "", "")).encode() + body


@pytest.mark.parametrize("bound", ["WAITING_MAX", "CALLER_WAITING_MAX"])
async def test_conversions_that_wait_are_bounded_and_those_of_lost_connections_left_out(
    town, monkeypatch, bound
):
    monkeypatch.setattr(conversions, bound, 2)
    go_on, bodies = threading.Event(), []

    def held(body, one):
        bodies.append(body)
        go_on.wait(PATIENCE_S)
        return parsed(body, one)

    parsed = http_api.parsed
    monkeypatch.setattr(http_api, "parsed", held)
    waiting = town.gateway._api._conversions  # noqa: SLF001 - what waits is internal
    long = json.dumps(LONG).encode()
    try:
        async with contextlib.AsyncExitStack() as lost:
            present = asyncio.create_task(call(town, "search", LONG, roles=("device",)))
            await until(lambda: bodies)
            for count in (2, 3):
                await lost.enter_async_context(raw(town, posted(long)))
                await until(lambda count=count: waiting.count == count)
            status, problem = await call(town, "search", LONG, roles=("device",))
            assert (status, problem["reason"]) == (429, "RATE_LIMITED")
            assert problem["retry_after_ms"] == 1_000
            left = town.gateway.counters.connections - 2
        await until(lambda: town.gateway.counters.connections == left)
    finally:
        go_on.set()
    assert (await present)[1]["reason"] == "INVALID_FIELD", "it has no circle"
    await until(lambda: not waiting.count)
    assert len(bodies) == 1


async def test_calls_are_operations_of_their_caller(tmp_path):
    async with a_town(tmp_path, device_rate=0.1) as town, town.client() as client:
        await client.attach()
        request = posted(b"", "Content-Length: 100", who=("device", "device"))
        async with raw(town, request) as caller:
            status, _ = await caller.head()
            assert status == 429
        assert town.gateway.counters.refused == {"RATE_LIMITED": 1}


async def test_a_device_makes_a_bounded_number_of_calls_at_once(town, monkeypatch):
    monkeypatch.setattr(http_api, "_BODY_S", PATIENCE_S)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(DEVICE_CALLS_MAX):
            await stack.enter_async_context(raw(town, posted(b"", "Content-Length: 100")))
        await until(lambda: town.gateway.counters.requests == DEVICE_CALLS_MAX)
        status, problem = await call(town, "search", roles=("device",))
        assert (status, problem["metadata"]["field"]) == (429, "calls")


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("who", "reason"), [("garbage", "UNAUTHENTICATED"), (None, "UNAUTHENTICATED")])
async def test_strangers(town, name, who, reason):
    method = "GET" if name == "status" else "POST"
    headers = {} if who is None else {"Authorization": f"Bearer {who}"}
    async with town.http.request(method, town.address(f"/v1/{name}"), headers=headers) as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert (await response.json(content_type=None))["reason"] == reason


async def test_a_path_that_is_not_there(town):
    async with town.http.get(town.address("/nothing")) as response:
        assert response.status == 404
        assert response.content_type == "application/problem+json"


async def test_a_server_that_cannot_be_reached(tmp_path):
    async with a_town(tmp_path) as town:
        await town.server.stop()
        with socket.socket() as held:  # no other server gets the port meanwhile
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", town.server.port))
            status, problem = await call(town, "search")
        assert (status, problem["type"]) == (502, "about:blank")


async def publishing_at_a_stop(town, commits):
    """Publish, and stop the server before the commit; return both tasks once the server has drained."""
    publishing = asyncio.create_task(call(town, "publish"))
    await commits.begun()
    stopping = asyncio.create_task(town.server.stop())
    (requests,) = town.server.listener.publishers._streams  # noqa: SLF001 - streams are internal
    await until(lambda: requests.is_draining)
    return publishing, stopping


async def test_a_publication_that_a_draining_server_has_admitted_gets_its_response(tmp_path):
    async with a_town(tmp_path) as town, held_commits(town.server) as commits:
        publishing, stopping = await publishing_at_a_stop(town, commits)
        commits.go_on.set()
        status, published = await publishing
        assert (status, published.get("ids")) == (200, ["1"])
        await stopping


async def test_an_admitted_publication_without_a_response_has_an_unknown_outcome(tmp_path, monkeypatch):
    monkeypatch.setattr("server.main._DRAIN_S", 0.1)
    monkeypatch.setattr("server.main._GRACE_S", 0.1)
    async with a_town(tmp_path) as town, held_commits(town.server) as commits:
        publishing, stopping = await publishing_at_a_stop(town, commits)
        status, problem = await publishing
        assert (status, problem["type"]) == (502, "about:blank")
        commits.go_on.set()
        await stopping


class EndingStream:
    """A stream that ends after `GoAway`, with the reason.

    Parameters
    ----------
    admitted_count
        The number of requests that it has admitted.
    """

    def __init__(self, admitted_count):
        self.error = errors_pb2.Error(reason=errors_pb2.ERROR_REASON_DRAINING)
        go_away = streams_pb2.GoAway(error=self.error, admitted_count=admitted_count)
        self._responses = [publisher_service_pb2.PublishResponse(go_away=go_away)]
        self.has_half_closed = False

    async def write(self, _message):
        """Take the request."""

    async def read(self):
        if self._responses:
            return self._responses.pop()
        assert self.has_half_closed
        trailing = grpc.aio.Metadata(("nearcast-error-bin", self.error.SerializeToString()))
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailing)

    async def done_writing(self):
        self.has_half_closed = True

    def cancel(self):
        """End it."""


async def test_the_reason_of_a_stream_does_not_refuse_a_request_that_was_admitted():
    refused = EndingStream(admitted_count=0)
    assert await http_api.published(refused, None) == refused.error
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await http_api.published(EndingStream(admitted_count=1), None)
    assert not failure.value.trailing_metadata()


async def test_status_and_inspect(town):
    status, found = await call(town, "status", roles=("operator",))
    assert (status, found["state"], found["gauges"]["objects"]) == (200, "SERVER_STATE_SERVING", "0")
    await call(town, "publish")
    status, found = await call(town, "inspect", {"object_id": "1"}, roles=("operator",))
    assert (status, found["object"]["object"]["keywords"]) == (200, ["sushi"])


def references(schema):
    if isinstance(schema, dict):
        yield from (schema[name] for name in schema if name == "$ref")
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


async def test_a_body_that_was_not_read_in_time_may_be_sent_again(town, monkeypatch):
    monkeypatch.setattr(http_api, "_BODY_S", 0.1)
    lines = ("POST /v1/search HTTP/1.1", "Host: g", f"Authorization: Bearer {token('one', 'publisher')}")
    lines += ("Content-Type: application/json", "Content-Length: 9", "Connection: close", "", "")
    async with raw(town, "\r\n".join(lines).encode(), b"{") as client:
        status, _ = await client.head()
        assert status == 503
        assert b'"RECOVERING"' in await client.rest()


async def test_the_description(town):
    async with town.http.get(town.address("/v1/openapi.json")) as response:
        found = await response.json()
    assert found == document()
    assert set(found["paths"]) == {one.path for one in CALLS}
    names = found["components"]["schemas"]
    assert {one.rpartition("/")[2] for one in references(found)} == set(names)
    assert names["Object"]["properties"]["id"] == {"type": "string", "format": "int64"}
    assert names["Object"]["properties"]["payload"]["contentEncoding"] == "base64"


async def test_the_page_has_everything_and_no_address_outside(town):
    async with town.http.get(town.address("/v1/docs")) as response:
        text = await response.text()
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert text == page()
    assert "https://" not in text
    assert all(one.path in text for one in CALLS)
    assert all(f'id="{reason.name}"' in text for reason in CODES)
    assert set(CODES) == set(Reason) - {Reason.UNSPECIFIED}


ALLOWED, OTHER = "https://app.example", "https://other.example"
ASKED = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}


async def test_browsers_learn_which_pages_may_call(tmp_path):
    async with a_town(tmp_path, origins=(ALLOWED,)) as town:
        address = town.address("/v1/search")
        async with town.http.options(address, headers={"Origin": ALLOWED, **ASKED}) as response:
            assert response.status == 204
            assert response.headers["Access-Control-Allow-Origin"] == ALLOWED
            assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
        async with town.http.options(address, headers={"Origin": OTHER, **ASKED}) as response:
            assert response.status == 405
            assert "Access-Control-Allow-Origin" not in response.headers
        who = {"Authorization": f"Bearer {token('somebody', 'device')}"}
        for body, status in ((SEARCH, 200), ({}, 400)):  # a page may read refusals, too
            async with town.http.post(address, json=body, headers={"Origin": ALLOWED, **who}) as response:
                assert response.status == status
                assert response.headers["Access-Control-Allow-Origin"] == ALLOWED
                assert response.headers["Vary"] == "Origin"
        async with town.http.post(address, json=SEARCH, headers={"Origin": OTHER, **who}) as response:
            assert response.status == 403
            assert "Access-Control-Allow-Origin" not in response.headers
        async with town.http.post(address, json=SEARCH, headers=who) as response:
            assert "Access-Control-Allow-Origin" not in response.headers
