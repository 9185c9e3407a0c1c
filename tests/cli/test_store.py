"""`nearcast store` beside a server, and after it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

import nearcast
from nearcast import GeoObject, SubscriptionState, TopK
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process, refused
from tests.sdk.conftest import until
from tests.support.ports import free_port

pytestmark = pytest.mark.processes


def run(*arguments, status=0):
    done = subprocess.run(
        [*COMMAND, "store", *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


async def filled(process):
    async with nearcast.connect(process.target) as client:
        objects = [GeoObject({"sushi"}, 14.0 + 0.01 * i, 35.5, 3600.0) for i in range(50)]
        ids = await client.publisher().publish(objects)
        device = await client.attach("d", lon=14.5, lat=35.5)
        await device.subscribe(TopK({"sushi"}, k=100))
    return ids


async def test_a_backup_of_a_running_server_serves_in_its_place(tmp_path):
    store, copy, again = (tmp_path / name for name in ("s.db", "copy.db", "again.db"))
    process = Process(AREA, "--port=0", f"--store={store}")
    ids = await filled(process)
    found = {" ".join(line.split()) for line in run("info", store).splitlines()}
    assert {"in use yes", "subscriptions top-k 1"} <= found
    assert any(line.startswith("server time 20") and line.endswith(" UTC") for line in found)
    assert "another server has it open" in refused("store", "compact", store)
    run("backup", store, copy)
    async with nearcast.connect(process.target) as client:
        await client.publisher().retract(ids[0])
    assert run("check", store) == f"{store}: 0 problems\n"
    process.signal(signal.SIGKILL)
    assert "objects 49" in {" ".join(line.split()) for line in run("info", store).splitlines()}
    assert run("compact", store).startswith(f"{store}: ")
    run("restore", copy, again)
    process = Process(AREA, "--port=0", f"--store={again}")
    try:
        async with nearcast.connect(process.target) as client:
            device = await client.attach("d", lon=14.5, lat=35.5)
            await client.sync()
            (subscription,) = device.subscriptions
            assert sorted(match.object.id for match in subscription.results()) == ids
    finally:
        process.signal(signal.SIGTERM)


async def test_damage_is_named_and_found_by_the_server_too(tmp_path):
    store = tmp_path / "s.db"
    process = Process(AREA, "--port=0", f"--store={store}")
    await filled(process)
    assert process.signal(signal.SIGTERM) == 0
    data = store.read_bytes()
    store.write_bytes(data.replace(b'["sushi"]', b'["sashi"]', 1))
    message = run("check", store, status=1)
    assert "does not match its checksum" in message
    assert message.endswith(f"{store}: 1 problems\n")
    assert "does not match its checksum" in refused("serve", AREA, "--port=0", f"--store={store}")
    for more in ((), ("--accept-loss",)):
        message = refused("store", "backup", *more, str(store), str(tmp_path / "copy.db"))
        assert "is damaged" in message
        assert message.endswith("nearcast serve --accept-loss\n")
    store.write_bytes(data[: len(data) // 3])
    message = refused("serve", AREA, "--port=0", f"--store={store}")
    assert "is damaged" in message
    assert "nearcast serve --accept-loss" in message


@pytest.mark.parametrize("command", ["info", "check", "compact"])
def test_a_missing_store(tmp_path, command):
    assert "does not exist" in refused("store", command, str(tmp_path / "s.db"))


@pytest.mark.parametrize("command", ["backup", "restore"])
async def test_folders_are_not_made(tmp_path, command):
    store = tmp_path / "s.db"
    assert Process(AREA, "--port=0", f"--store={store}").signal(signal.SIGTERM) == 0
    target = tmp_path / "none" / "x.db"
    message = refused("store", command, str(store), str(target))
    assert message == (f"Error: {target} cannot be written: the folder {target.parent} does not exist\n")
    assert not target.parent.exists()


def test_help():
    done = subprocess.run(
        [sys.executable, "-m", "cli", "store", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    for command in ("backup", "restore", "check", "compact", "info"):
        assert command in done.stdout


@pytest.mark.slow
async def test_names_outlive_a_kill_a_backup_and_a_restore(tmp_path):
    store, copy, again = (tmp_path / name for name in ("s.db", "copy.db", "again.db"))
    options = (AREA, f"--port={free_port()}")
    process = Process(*options, f"--store={store}")
    await filled(process)
    lunch, tea = TopK({"sushi"}, k=2), TopK({"tea"}, k=2)
    async with nearcast.connect(process.target) as client:
        device = await client.attach("e", lon=14.5, lat=35.5)
        held = await device.subscribe(lunch, name="lunch")
        await device.subscribe(lunch, name="dinner")
        assert process.signal(signal.SIGKILL) == -signal.SIGKILL
        process = Process(*options, f"--store={store}")
        await until(lambda: held.state is SubscriptionState.EXACT)
        assert await device.subscribe(tea, name="dinner") in device.subscriptions, "the app lives on"
    assert process.signal(signal.SIGKILL) == -signal.SIGKILL
    assert run("check", store) == f"{store}: 0 problems\n"
    run("backup", store, copy)
    run("restore", copy, again)
    for path in (store, again):
        process = Process(*options, f"--store={path}")
        async with nearcast.connect(process.target) as client:
            device = await client.attach("e", lon=14.5, lat=35.5)
            found = {one.name: one.spec for one in device.subscriptions}
            assert found == {"lunch": lunch, "dinner": tea}
            assert len((await device.subscribe(lunch, name="lunch")).results()) == 2
            assert len(device.subscriptions) == 2
        assert process.signal(signal.SIGTERM) == 0


async def test_a_killed_server_without_its_files_is_refused_unless_that_is_accepted(tmp_path):
    store, log = tmp_path / "s.db", tmp_path / "s.db-wal"
    process = Process(AREA, "--port=0", f"--store={store}")
    ids = await filled(process)
    process.signal(signal.SIGKILL)
    whole, frames = store.read_bytes(), log.read_bytes()
    serve = ("serve", AREA, "--port=0", f"--store={store}")
    for damage in (store.unlink, lambda: store.write_bytes(b"")):
        damage()
        for more in ((), ("--create",)):
            assert "would be lost; restore a backup, or continue" in refused(*serve, *more)
        assert log.read_bytes() == frames
    store.write_bytes(whole)
    log.write_bytes(frames[:-100])
    message = refused(*serve)
    assert "the last 1 acknowledged commits are missing" in message
    assert "--accept-loss" in message
    process = Process(*serve[1:], "--accept-loss")
    async with nearcast.connect(process.target) as client:
        assert await client.publisher().publish([GeoObject({"tea"}, 14.5, 35.5, 3600.0)]) > ids[-1:]
    assert process.signal(signal.SIGTERM) == 0
    assert "the loss is accepted" in process.output
    assert run("check", store) == f"{store}: 0 problems\n"
