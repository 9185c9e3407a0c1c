"""`nearcast map`: the address of the page, and the gateway that serves it."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from cli.app import app
from cli.map import READY


def run(*arguments):
    return CliRunner().invoke(app, ["map", *arguments])


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


@pytest.mark.processes
def test_a_gateway_of_its_own_serves_the_page_and_the_run(tmp_path):
    file = tmp_path / "run.ncmap"
    file.write_bytes(b"NCRUN001 and so on")
    command = [sys.executable, "-m", "cli", "map", str(file), "--server", "127.0.0.1:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        found = re.fullmatch(READY + r"(http://127\.0\.0\.1:\d+/map/)#run=0\n", process.stdout.readline())
        with urllib.request.urlopen(found[1]) as response:  # noqa: S310 - http
            assert "<title>nearcast map</title>" in response.read().decode()
        with urllib.request.urlopen(f"{found[1]}base") as response:  # noqa: S310 - http
            assert response.read() == file.read_bytes()
        process.terminate()
    assert process.returncode == 0
