"""Wrong uses of `nearcast serve`: a line each, which names what was given, where, and what is allowed."""

from __future__ import annotations

import asyncio
import signal
import socket
import urllib.request

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

import nearcast
from cli.app import app
from safe_region.earth.frame import Area
from server.settings import ServerSettings
from simulator.world import World, write_world
from tests.cli.test_serve import AREA, Process, refused

NO_CREATE = {"NEARCAST_CREATE": "false"}


def line(*arguments, environment=None, status=2) -> str:
    """The one line that is said by a process."""
    (message,) = refused("serve", *arguments, environment=environment, status=status).splitlines()
    return message


def wrong(*arguments, environment=None) -> str:
    """The one line that is said of settings, before anything begins: in this process."""
    variables = {"GRPC_VERBOSITY": "NONE", **(environment or {})}
    done = CliRunner().invoke(app, ["serve", *arguments], env=variables)
    assert (done.exit_code, done.stdout) == (2, "")
    (message,) = done.stderr.splitlines()
    return message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "Error: the area is missing: give --area WEST,SOUTH,EAST,NORTH in degrees, such as ",
        ),
        (
            ["--area=1,2,3"],
            "Error: --area is '1,2,3', must be lon_min,lat_min,lon_max,lat_max in degrees",
        ),
        (
            ["--area=runs/none"],
            "Error: --area is 'runs/none', which is no folder; must be the folder of a simulation",
        ),
        (["--area=[1,2"], "Error: --area is '[1,2', must be lon_min,lat_min,lon_max,lat_max in degrees"),
        (["--area=[1,2,3," + "9" * 400 + "]"], "Error: --area is '[1,2,3,9999"),
        (
            [AREA, "--log=nats://node:secret@log1:4222"],
            "Error: --log must have no password or token: others on this machine can see it; put it into",
        ),
        (
            [AREA, "--processes=2", "--log=nats://log1:4222"],
            "Error: --log must not be set with --processes, which has a log of its own",
        ),
        (
            [AREA, "--processes=2", "--accept-loss"],
            "Error: --accept-loss must not be set with --processes",
        ),
        (
            [AREA, "--processes=3", "--port=65534"],
            "Error: --port is 65534, must be at most 65533 with 3 processes",
        ),
        (
            [AREA, "--processes=2", "--advertise=localhost:65535"],
            "Error: --advertise is 'localhost:65535', must have a port of at most 65534 with 2 processes",
        ),
        (
            [AREA, "--advertise=h:99999"],
            "Error: --advertise is 'h:99999', must be host:port with a port from 1 to 65535",
        ),
        (
            [AREA, "--advertise=h"],
            "Error: --advertise is 'h', must be host:port with a port from 1 to 65535",
        ),
        (
            ["--area=1,2,3,95"],
            "Error: --area latitudes are 2.0..95.0, must be increasing within -89.0..89.0",
        ),
        (
            ["--area=1,2,1.000000001,3"],
            "Error: --area is 0.000111 m wide and 1.11e+05 m high, must be at least 1 m wide and high",
        ),
        ([AREA, "--port=70000"], "Error: --port is '70000', must be a whole number, 0 to 65535"),
        ([AREA, "--host="], "Error: --host is '', must be an address or a name of this machine"),
        (
            [AREA, "--metrics-host="],
            "Error: --metrics-host is '', must be an address or a name of this machine",
        ),
        ([AREA, "--ahead=x"], "Error: --ahead is 'x', must be a number, 0 to 1"),
        (
            [AREA, "--lease-ms=-1"],
            "Error: --lease-ms is '-1', must be a whole number, at least 0 milliseconds",
        ),
        (
            [AREA, "--log-level=LOUD"],
            "Error: --log-level is 'LOUD', must be one of DEBUG, INFO, WARNING, ERROR",
        ),
        ([AREA, "--buffer-extra=5000"], "Error: --buffer-extra is 5000, must be auto or 0 to 1000"),
        (
            [AREA, "--subscription-index=b-tree"],
            "Error: --subscription-index is 'b-tree', must be one that `nearcast indexes` lists for ",
        ),
        (
            [AREA, "--moving-index=x"],
            "Error: --moving-index is 'x', must be one that `nearcast indexes` lists for moving boolean",
        ),
        ([AREA, "--jwks=/nowhere"], "Error: --jwks is '/nowhere', must be an existing file"),
        (
            [AREA, f"--tls-key={__file__}"],
            "Error: --tls-key needs --tls-certificate: they must be given together",
        ),
        (
            [AREA, "--tenant=a b", f"--jwks={__file__}"],
            "Error: --tenant has 'a b', must have 1 to 64 printable",
        ),
        (
            [AREA, "--host=0.0.0.0", "--dev-token=geheim"],
            "Error: --host is '0.0.0.0', must be of this machine without TLS and tokens: give --tls-",
        ),
        (
            [AREA, "--source=redis://nowhere"],
            "Error: --source: address is redis://nowhere, must be like redis://",
        ),
    ],
)
def test_a_wrong_flag(arguments, message):
    found = wrong(*arguments)
    assert found.startswith(message)
    assert "geheim" not in found


@pytest.mark.processes
def test_several_wrong_settings_are_a_line_each():
    message = refused("serve", "--port=x", "--keepalive-ms=1", status=2).splitlines()
    assert [one.removeprefix("Error: ").split()[0] for one in message] == [
        "--port",
        "the",
        "--keepalive-ms",
    ]


@pytest.mark.processes
def test_a_wrong_variable():
    message = line(AREA, environment={"NEARCAST_PORT": "abc"})
    assert message == "Error: NEARCAST_PORT is 'abc', must be a whole number, 0 to 65535"


@pytest.mark.parametrize(
    "address",
    [
        "geheim",
        "//geheim/v1",
        "grpc://geheim:4317",
        "http://",
        "https://h:geheim/v1",
        "http://[geheim/v1",
    ],
)
def test_an_endpoint_of_traces_that_is_none_is_not_shown(address):
    assert wrong(AREA, f"--trace-endpoint={address}") == (
        "Error: --trace-endpoint must be like http://127.0.0.1:4318/v1/traces, or with https"
    )


@pytest.mark.parametrize(
    "address",
    [
        "redis://u:geheim@h/0/f",
        "redis://h/0/f?password=geheim",
        "redis://:geheim#more@h:1/0/f",
        "redis://h:geheim/0/f",
        "redis://h:1/0/f#geheim",
        "http://u:geheim@h/0/f",
        "http://u:geheim@h/0/f?x=geheim",
    ],
)
@pytest.mark.parametrize("flag", ["--source", "--sink"])
def test_a_possible_password_is_not_shown(flag, address):
    message = wrong(AREA, f"{flag}={address}")
    assert message.startswith(f"Error: {flag}")
    assert " redis://" in message or "NEARCAST_REDIS_PASSWORD" in message, "the error has the limit"
    assert "geheim" not in message


def test_an_error_of_the_settings_themselves_shows_no_value():
    with pytest.raises(ValidationError) as found:
        ServerSettings(area="14,35,15,36", host="0.0.0.0", tokens=("geheim",))  # noqa: S104
    assert "must be of this machine" in str(found.value)
    assert "geheim" not in str(found.value)


@pytest.mark.processes
def test_a_variable_that_is_no_setting_is_named(tmp_path):
    names = ("NEARCAST_JWKZ", "NEARCAST_SERVICE_HOST", "NEARCAST_PORT_7433_TCP", "NEARCAST_REDIS_USER")
    store = f"--store={tmp_path}"  # which is a folder
    message = refused("serve", AREA, store, environment=dict.fromkeys(names, "geheim")).splitlines()
    assert len(message) == 2
    assert message[0].endswith(
        "the variable NEARCAST_JWKZ is not a setting and has no effect: did you mean NEARCAST_JWKS?"
    )


def test_secrets_are_not_shown():
    message = wrong(AREA, environment={"NEARCAST_TOKENS": "geheim"})
    assert message == 'Error: NEARCAST_TOKENS must be a JSON list of texts, such as ["one", "two"]'
    message = wrong(AREA, environment={"NEARCAST_TOKENS": '{"geheim": 1}'})
    assert message.startswith("Error: NEARCAST_TOKENS must be ")
    assert "geheim" not in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'stroe = "x.db"\n', "{config}: 'stroe' is not a setting: did you mean 'store'?"),
        (
            b"metrics-port = 1\n",
            "{config}: 'metrics-port' is not a setting: did you mean 'metrics_port'?",
        ),
        (b"zzzz = 1\n", "{config}: 'zzzz' is not a setting"),
        (b"port = 70000\n", "port in {config} is 70000, must be a whole number, 0 to 65535"),
        (
            b'tokens = "geheim"\n',
            "tokens in {config} must be texts: in a variable a JSON list of them, in the",
        ),
        (b"area = [1, 2\n", "{config} is not TOML: unclosed array (at the end, line 1)"),
        (
            b"port = 1\nport 2\n",
            "{config} is not TOML: expected '=' after a key in a key/value pair (at line 2",
        ),
        (b'store = "\xff"\n', "{config} is not UTF-8 text (at line 1)"),
    ],
)
def test_a_wrong_file(tmp_path, text, message):
    config = tmp_path / "city.toml"
    config.write_bytes(text)
    found = wrong(AREA, f"--config={config}")
    assert found.startswith(f"Error: {message.format(config=config)}")
    assert "geheim" not in found


# -- the store -----------------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_missing_store_is_created_only_on_request(tmp_path):
    store = tmp_path / "folder" / "x.db"
    message = line(AREA, "--port=0", f"--store={store}", environment=NO_CREATE, status=1)
    assert message == (f"Error: --store is '{store}', must exist; --create makes a new store")
    assert not list(tmp_path.iterdir())
    empty = tmp_path / "empty.db"
    empty.touch()
    message = line(AREA, "--port=0", f"--store={empty}", environment=NO_CREATE, status=1)
    assert message.startswith(f"Error: --store is '{empty}', is empty, must be a store; --create")
    process = Process(AREA, "--port=0", f"--store={store}", "--create", environment=NO_CREATE)
    assert process.signal(signal.SIGTERM) == 0
    process = Process(AREA, "--port=0", f"--store={store}", environment=NO_CREATE)
    assert process.signal(signal.SIGTERM) == 0


@pytest.mark.processes
def test_the_usual_store_has_to_be_made_too(tmp_path):
    environment = {**NO_CREATE, "NEARCAST_STORE": str(tmp_path / "nearcast.db")}
    message = line(AREA, "--port=0", environment=environment, status=1)
    assert message.startswith(f"Error: NEARCAST_STORE is '{tmp_path}/nearcast.db', must exist; ")


@pytest.mark.processes
def test_in_memory_nothing_has_to_be_made():
    process = Process(AREA, "--port=0", "--store=:memory:", environment=NO_CREATE)
    assert process.signal(signal.SIGTERM) == 0


@pytest.mark.processes
def test_a_folder_is_no_store(tmp_path):
    message = line(AREA, "--port=0", f"--store={tmp_path}", status=1)
    assert message == f"Error: --store is '{tmp_path}', must be a file, not a folder"


# -- the address ---------------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_port_in_use_leaves_no_store_behind(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = line(AREA, f"--port={port}", f"--store={tmp_path / 's.db'}", status=1)
    assert message == (
        f"Error: --port is {port}, must be free on host 127.0.0.1: another program listens on it"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.processes
def test_a_port_in_use_leaves_a_store_that_was_there(tmp_path):
    store = tmp_path / "s.db"
    assert Process(AREA, "--port=0", f"--store={store}").signal(signal.SIGTERM) == 0
    before = store.read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused("serve", AREA, f"--port={taken.getsockname()[1]}", f"--store={store}")
    assert store.read_bytes() == before


@pytest.mark.processes
@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine(tmp_path, host):
    """Of a network that is for documentation."""
    message = line(
        AREA, "--port=0", f"--host={host}", "--insecure", f"--store={tmp_path / 's.db'}", status=1
    )
    assert message.startswith(
        f"Error: --host is '{host}', must be an address or a name of this machine: "
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.processes
@pytest.mark.parametrize("host", ["::1", "[::1]"])
async def test_an_ipv6_address(tmp_path, host):
    addresses = (f"--host={host}", "--port=0", "--metrics-port=0", f"--metrics-host={host}")
    process = Process(AREA, *addresses, f"--store={tmp_path / 's.db'}")
    assert process.target.startswith("[::1]:")
    async with nearcast.connect(process.target) as client:
        await client.sync()
    metrics = process.line().removeprefix("metrics on ").strip()
    assert metrics.startswith("http://[::1]:")
    response = await asyncio.to_thread(urllib.request.urlopen, metrics)
    assert "nearcast_" in response.read().decode()
    assert process.signal(signal.SIGTERM) == 0
    assert f"serving on {process.target}: " in process.output


@pytest.mark.processes
def test_a_metrics_address_of_another_machine(tmp_path):
    flags = ("--metrics-port=0", "--metrics-host=192.0.2.1", f"--store={tmp_path / 's.db'}")
    message = line(AREA, "--port=0", *flags, status=1)
    assert message.startswith("Error: --metrics-host is '192.0.2.1', must be an address of this machine ")


@pytest.mark.processes
def test_a_folder_that_is_no_simulation(tmp_path):
    message = line(f"--area={tmp_path}", "--port=0", status=1)
    assert message == (
        f"Error: {tmp_path / 'world.json'} is missing: the folder is not a simulation, or an incomplete "
        "one"
    )


@pytest.mark.processes
def test_the_area_may_be_a_simulations(tmp_path):
    area = Area(14.0, 35.0, 15.0, 36.0)
    write_world(World("town", area, 1, 10, 1000, 0, 600, {}, None, []), tmp_path)
    process = Process(f"--area={tmp_path}", "--port=0", "--store=:memory:")
    assert process.signal(signal.SIGTERM) == 0
    assert "about 35.5000 N, 14.5000 E" in process.output


@pytest.mark.processes
def test_the_size_of_the_area_is_logged():
    """So that somebody who has swapped longitudes and latitudes sees it."""
    process = Process("--area=14.18,35.80,14.58,36.09", "--port=0", "--store=:memory:")
    assert process.signal(signal.SIGTERM) == 0
    size, place = "36.01 km from west to east, 32.25 km from south to north", "35.9450 N, 14.3800 E"
    assert f"service area: {size}, about {place}" in process.output
