"""The tests of the TypeScript SDK, the golden vectors among them, where Node.js and its packages are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.app import app
from cli.gateway_demo import node_program

FOLDER = Path(__file__).resolve().parents[2] / "clients" / "typescript"
NODE_MIN = 20


def why_not():
    """Return the reason why the tests cannot run here; None if they can."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return "Node.js is not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").split(".", maxsplit=1)[0]) < NODE_MIN:
        return f"Node.js is {version.strip()}, and {NODE_MIN} is needed"
    if not (FOLDER / "node_modules" / ".package-lock.json").exists():
        return "the packages of the TypeScript SDK are not installed: make client-packages"
    return None


@pytest.mark.processes
def test_the_typescript_sdk():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    environment = {**os.environ, "NEARCAST_PYTHON": sys.executable}
    command = ["npm", "test", "--silent"]
    done = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert int(re.search(r"^\S+ pass (\d+)$", done.stdout, re.MULTILINE)[1]) > 0


@pytest.mark.processes
def test_a_demo_with_devices_in_node_behind_a_gateway(tmp_path):
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    build = ["npm", "run", "--silent", "build-tests"]
    subprocess.run(build, cwd=FOLDER, check=True)
    size = ("--devices", "12", "--seconds", "20", "--out", str(tmp_path / "demo"))
    command = [sys.executable, "-m", "cli", "demo", "--gateway", *size]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    figures = json.loads((tmp_path / "demo" / "replay.json").read_text())
    assert figures["mismatches"] == 0
    assert figures["audited_lists"] > 0
    assert figures["objects_sent"] > 0
    assert figures["reports"] < figures["moves"]
    data = (tmp_path / "demo" / "replay.ncmap").read_bytes()
    header = json.loads(data[12 : 12 + int.from_bytes(data[8:12], "little")])
    assert len(header["device_ids"]) == 12
    assert header["logged"] == []  # the other program has their reports and results


def test_a_demo_with_a_gateway_needs_node(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(click.ClickException, match="or newer, and there is none"):
        node_program()


@pytest.mark.processes
def test_a_demo_with_a_gateway_needs_a_node_that_is_new_enough(tmp_path, monkeypatch):
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v18.19.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(click.ClickException, match=r"newer: .* is v18\.19\.0$"):
        node_program()


def test_a_demo_with_a_gateway_has_no_tokens():
    refused = CliRunner().invoke(app, ["demo", "--gateway", "--secure"])
    assert (refused.exit_code, "without tokens" in refused.output) == (2, True)


def test_the_page_shows_the_examples_that_are_compiled():
    page = (FOLDER.parents[1] / "docs" / "typescript.md").read_text()
    examples = list((FOLDER / "examples").glob("*.ts"))
    assert len(re.findall(r"^```ts$", page, re.MULTILINE)) == len(examples)
    for path in examples:
        assert f"```ts\n{path.read_text()}```\n" in page, path.name


def test_the_lock_file_names_no_address():
    """Packages come from the registry that a user has configured."""
    assert '"resolved"' not in (FOLDER / "package-lock.json").read_text()
