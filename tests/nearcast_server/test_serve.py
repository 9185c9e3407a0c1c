"""Servers for the tests of apps, in this process and beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import nearcast
import nearcast.sync
import nearcast_server
from nearcast import GeoObject, Reason, RefusedError, TopK, UnavailableError
from tests.support.ports import free_port

AREA = (14, 35, 15, 36)
HERE = {"lon": 14.5, "lat": 35.5}
TEA = GeoObject({"tea"}, **HERE, ttl_s=3600)
PATIENCE_S = 60.0


async def test_in_this_process(tmp_path):
    local = nearcast_server.serve(AREA, store=tmp_path / "store.db")
    for expected in (0, 1):
        async with local as server:
            assert server is local
            assert repr(server) == f"<nearcast_server.LocalServer 127.0.0.1:{server.port}>"
            async with nearcast.connect(server.address) as client:
                assert len(await client.search(TopK({"tea"}), **HERE)) == expected
                await client.publisher().publish(TEA)
            with pytest.raises(nearcast_server.StartError, match="the server is running, on 127"):
                await local.__aenter__()
    assert repr(local) == "<nearcast_server.LocalServer not running>"
    with pytest.raises(nearcast_server.StartError, match="within its block only"):
        _ = local.address


@pytest.mark.processes
def test_beside_this_process(tmp_path):
    local = nearcast_server.serve(AREA, store=tmp_path / "store.db", tokens=["secret"], virtual_time=True)
    with local as server:
        address = server.address
        with nearcast.sync.connect(address, token="secret") as client:  # noqa: S106
            client.advance_clock(client.status().time_ms + 1_000)
            client.publisher().publish(TEA)
        with nearcast.sync.connect(address) as stranger, pytest.raises(RefusedError) as refused:
            stranger.status()
        assert refused.value.reason is Reason.UNAUTHENTICATED
        with pytest.raises(nearcast_server.StartError, match="the server is running, on 127"):
            local.__enter__()
    with nearcast.sync.connect(address, token="secret") as client, pytest.raises(UnavailableError):  # noqa: S106
        client.status()
    with pytest.raises(nearcast_server.StartError, match="within its block only"):
        _ = local.port


WRONG = [
    ({"area": (1, 2, 3)}, r"^area is \[1, 2, 3\], must be lon_min,lat_min,lon_max,lat_max in degrees$"),
    ({"object_index": "iqf-pluss"}, "^object_index is 'iqf-pluss', must be one that"),
    ({"stroe": "x.db"}, "^stroe is no setting$"),
    ({"lease_ms": -1}, "^lease_ms is -1: "),
    ({"store": "/"}, "must be a file"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
async def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(nearcast_server.StartError, match=message):
        async with nearcast_server.serve(**{"area": AREA, **settings}):
            pass


@pytest.mark.processes
def test_a_process_that_cannot_start_says_why():
    settings, message = WRONG[0]
    with pytest.raises(nearcast_server.StartError, match=message), nearcast_server.serve(**settings):
        pass
    with pytest.raises(nearcast_server.StartError, match="settings have <object"):
        nearcast_server.serve(AREA, jwks=object()).__enter__()


async def test_a_port_that_is_taken():
    async with nearcast_server.serve(AREA) as server:
        with pytest.raises(nearcast_server.StartError, match=f"port is {server.port}, must be free"):
            async with nearcast_server.serve(AREA, port=server.port):
                pass


PROGRAM = """
import sys
import nearcast.sync
import nearcast_server

with nearcast_server.serve((14, 35, 15, 36), port=int(sys.argv[1])) as server:
    with nearcast.sync.connect(server.address) as client:
        print(client.status().state.name, flush=True)
    sys.stdin.read()
"""


def started(folder, port):
    (folder / "program.py").write_text(PROGRAM)
    (folder / "server.py").write_text("raise SystemExit('this is the app')\n")
    command = [sys.executable, str(folder / "program.py"), str(port)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answers(port):
    with nearcast.sync.connect(f"127.0.0.1:{port}") as client:
        try:
            client.status()
        except UnavailableError:
            return False
    return True


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_the_program_however_that_ends(tmp_path, number):
    """The program has a module with the name of one of ours."""
    port = free_port()
    program = started(tmp_path, port)
    assert program.stdout.readline() == "SERVING\n"
    assert answers(port)
    os.kill(program.pid, number)
    program.communicate()
    give_up_s = time.monotonic() + PATIENCE_S
    while answers(port):
        assert time.monotonic() < give_up_s
