"""Devices through a gateway: the conversation of `Attach` over a WebSocket."""

from __future__ import annotations

from tests.support.identity import token
from tests.wire.city import publish
from tests.wire.test_bad_input import an_object

PUBLISHER = token("publisher", "publisher")


async def test_hello_subscribe_snapshot_and_delta(town):
    async with town.client() as client:
        assert client.socket.protocol == "nearcast.v1"
        welcome = await client.attach()
        assert welcome.epoch
        assert not welcome.resumed
        snapshot = await client.subscribe()
        assert snapshot.snapshot
        assert not snapshot.add
        (number,) = (await publish(town, PUBLISHER, an_object(payload=b"20 % off"))).ids
        delta = (await client.receive()).delta
        assert [one.object.id for one in delta.add] == [number]
        assert delta.add[0].object.payload == b"20 % off"
        assert delta.version == snapshot.version + 1
