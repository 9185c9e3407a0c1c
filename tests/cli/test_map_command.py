"""`nearcast map`: the address of the page, and the gateway that serves it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import aiohttp
import pytest
from click.testing import CliRunner

from cli.app import app
from cli.map import READY
from tests.gateway.town import Client, reason_of
from tests.wire.city import a_city
from tests.wire.test_bad_input import hello

NO_SERVER = "127.0.0.1:1"


def run(*arguments, environment=None):
    return CliRunner().invoke(app, ["map", *arguments], env=environment)


@contextlib.contextmanager
def page(*arguments, environment=None):
    """Run the command until the block ends; yield the address of the page, and its fragment."""
    command = [sys.executable, "-m", "cli", "map", *map(str, arguments)]
    variables = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        found = re.fullmatch(READY + r"(http://127\.0\.0\.1:\d+/map/)(#.*)?\n", process.stdout.readline())
        try:
            yield found[1], found[2]
        finally:
            process.terminate()
    assert process.returncode == 0


def read(address, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as response:  # noqa: S310 - http
        return response.read()


def test_the_page_of_a_gateway_that_runs_already(tmp_path):
    assert run("--gateway", "https://near.example/").output == f"{READY}https://near.example/map/\n"
    file = tmp_path / "token"
    file.write_text("se/cret\n")
    found = run("--gateway", "https://near.example", "--token-file", str(file))
    assert found.output == f"{READY}https://near.example/map/#token=se%2Fcret\n"


def test_an_address_that_is_none_is_refused(tmp_path):
    for address in ("near.example", "ftp://near.example", "https://"):
        found = run("--gateway", address)
        assert found.exit_code == 2
        assert "must be such as https://near.example" in found.output
    assert "--map-file" in run("--gateway", "https://near.example", str(tmp_path)).output


def test_a_folder_without_a_simulation_is_refused(tmp_path):
    found = run(str(tmp_path))
    assert found.exit_code == 1
    assert "world.json" in found.output


@pytest.mark.parametrize(
    "options",
    [["--server", "10.1.2.3"], ["--server", "localhost,10.1.2.3"]],
)
def test_tokens_do_not_reach_another_machine_without_tls(options):
    found = run(*options)
    assert (found.exit_code, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert line.startswith("Error: --server is ")
    assert "give --tls or --tls-roots, or say --insecure" in line


@pytest.fixture
def recorded(tmp_path):
    file = tmp_path / "run.ncmap"
    file.write_bytes(b"NCRUN001 and so on")
    return file


@pytest.mark.processes
def test_a_gateway_of_its_own_serves_the_page_and_the_run(recorded):
    with page(recorded, "--server", NO_SERVER) as (address, fragment):
        assert fragment == "#run=0"
        assert "<title>nearcast map</title>" in read(address).decode()
        assert read(f"{address}base") == recorded.read_bytes()


@pytest.mark.processes
@pytest.mark.parametrize(
    "options",
    [["--tls-server-name", "near.example"], ["--insecure"]],
)
def test_another_machine_with_tls_or_on_request(options):
    with page("--server", "10.1.2.3", *options) as (address, _):
        assert "<title>nearcast map</title>" in read(address).decode()


@pytest.mark.processes
def test_variables_of_a_gateway_have_no_effect(recorded):
    variables = {"HOST": "0.0.0.0", "JWKS": "/nowhere", "ORIGINS": "x", "CONNECTIONS_MAX": "0"}  # noqa: S104
    environment = {f"NEARCAST_GATEWAY_{name}": text for name, text in variables.items()}
    with page(recorded, "--server", NO_SERVER, environment=environment) as (address, _):
        assert read(f"{address}base") == recorded.read_bytes()


@pytest.mark.processes
async def test_callers_of_its_gateway_need_its_token(tmp_path, recorded):
    file = tmp_path / "token"
    file.write_text("s3cret\n", encoding="utf-8")
    async with a_city(tmp_path, tokens=("s3cret",)) as city, aiohttp.ClientSession() as http:
        arguments = (recorded, "--server", f"127.0.0.1:{city.server.port}", "--token-file", file)
        with page(*arguments) as (address, fragment):
            assert fragment == "#token=s3cret&run=0"
            with pytest.raises(urllib.error.HTTPError, match="401"):
                read(f"{address}base")
            assert read(f"{address}base", "s3cret") == recorded.read_bytes()
            attach = address.replace("/map/", "/v1/attach")
            async with http.ws_connect(attach, protocols=("nearcast.v1",)) as socket:
                client = Client(socket)
                await client.send(hello(device_id="victim"))
                assert reason_of((await client.receive()).go_away.error) == "UNAUTHENTICATED"
            async with http.ws_connect(attach, protocols=("nearcast.v1", "bearer.s3cret")) as socket:
                await Client(socket).attach("victim")
