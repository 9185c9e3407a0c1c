"""The files under ops: they name settings, packages and commands that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from cli.app import app
from server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "ops" / "Dockerfile").read_text()
UNIT = ROOT / "ops" / "systemd" / "nearcast.service"
OF_CLIENTS = {"server", "token", "token_file", "tls", "tls_root", "tls_server_name"}
"""Variables of `nearcast status` and the like."""


@pytest.mark.parametrize("text", [DOCKERFILE, UNIT.read_text()])
def test_variables_are_settings(text):
    names = {name.lower() for name in re.findall(r"\bNEARCAST_([A-Z_]+)", text)}
    assert names
    assert names - OF_CLIENTS <= set(ServerSettings.model_fields)


def test_the_image_has_every_package_and_nothing_else():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = pyproject["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {name.removesuffix("*") for name in found}
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert copied == packages | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}


def test_the_image_starts_existing_commands_as_an_unprivileged_user():
    for command in ("compile", "serve", "status"):
        assert re.search(rf"nearcast[\", ]+{command}", DOCKERFILE)
        assert command in app.commands
    user = DOCKERFILE.index("USER 10001")
    assert user < DOCKERFILE.index("RUN nearcast compile"), "the owner of the cache"


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd does not exist")
def test_the_unit_is_understood():
    done = subprocess.run(
        ["systemd-analyze", "verify", str(UNIT)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if "nearcast.service" in line]
    assert [line for line in complaints if "is not executable" not in line] == []
