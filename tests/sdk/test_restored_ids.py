"""After a restore ids are given again: what a device held under one may be another object now."""

from __future__ import annotations

import asyncio

import nearcast
from nearcast import Boolean, Bounds, Change, ChangeKind, ChangeReason, Circle, GeoObject, TopK
from server.store import backup, restore
from tests.sdk.conftest import Place, until
from tests.support.proxy import Proxy

HERE = Bounds(14.49, 35.49, 14.51, 35.51)
DWELL_MS = 8_000


def tea(payload=b""):
    return GeoObject({"tea"}, 14.5, 35.5, 3600.0, payload)


def shown(subscription):
    return [(match.object.id, match.object.payload) for match in subscription.results()]


async def restored(place, folder):
    """Put the store in the place of what the backup holds."""
    await place.stop()
    for suffix in ("", "-wal", "-shm", "-mark", ".lock"):
        (folder / f"store.db{suffix}").unlink(missing_ok=True)
    restore(folder / "backup.db", folder / "store.db", lambda *_: None)
    await place.start()


async def test_another_object_under_the_same_id_is_another_object(tmp_path):
    place = Place(tmp_path / "store.db", virtual_time=True)
    await place.start()
    proxy = Proxy(place.target)
    target = await proxy.start()
    async with nearcast.connect(place.target) as near, nearcast.connect(target) as client:
        await near.advance_clock(1_000)
        (kept,) = await near.publisher().publish(tea(b"kept"))
        device = await client.attach("d", lon=14.5, lat=35.5)
        plain = [await device.subscribe(TopK({"tea"})), await device.subscribe(Boolean({"tea"}, HERE))]
        dwelling = [
            await device.subscribe(Boolean({"tea"}, where, moving, dwell_s=DWELL_MS / 1000))
            for where, moving in ((Circle(500.0), True), (HERE, False))
        ]
        backup(tmp_path / "store.db", tmp_path / "backup.db", lambda *_: None)
        (old,) = await near.publisher().publish(tea(b"old"))
        await client.sync()
        await client.advance_clock(1_000 + DWELL_MS)
        await client.sync()
        assert all(shown(one) == [(kept, b"kept"), (old, b"old")] for one in (*plain, *dwelling))
        changes = [[], []]

        async def listen(number):
            async for change in plain[number].changes():
                changes[number].append(change)

        tasks = [asyncio.create_task(listen(number)) for number in range(2)]
        await until(lambda: all(len(one) == 2 for one in changes))
        before = [one[1].object for one in changes]
        proxy.is_open = False
        proxy.cut()
        await restored(place, tmp_path)
        await near.advance_clock(1_000 + DWELL_MS)
        assert await near.publisher().publish(tea(b"new")) == [old], "the id is given again"
        proxy.is_open = True
        await until(lambda: all((old, b"new") in shown(one) for one in plain))
        await until(lambda: all(len(one) == 4 for one in changes))
        for one, was in zip(changes, before, strict=True):
            left, entered = one[2:]
            assert left == Change(ChangeKind.LEFT, was, 1, ChangeReason.RESUMED)
            assert (entered.kind, entered.object.payload) == (ChangeKind.ENTERED, b"new")
        await client.sync()
        assert [shown(one) for one in dwelling] == [[(kept, b"kept")]] * 2, (
            "its lifetime has just started"
        )
        await client.advance_clock(999 + 2 * DWELL_MS)
        assert [shown(one) for one in dwelling] == [[(kept, b"kept")]] * 2
        await client.advance_clock(1_000 + 2 * DWELL_MS)
        assert [shown(one) for one in dwelling] == [[(kept, b"kept"), (old, b"new")]] * 2
        for task in tasks:
            task.cancel()
    await proxy.stop()
    await place.stop()
