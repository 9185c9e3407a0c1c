"""`nearcast_server` as `pip install` installs it, away from the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("pyproject.toml", "README.md", "LICENSE")
PROGRAM = """
import sys

sys.path.insert(0, sys.argv[1])
import nearcast_server

assert nearcast_server.__file__.startswith(sys.argv[1]), nearcast_server.__file__
print(type(nearcast_server.make_index("iqf-plus")).__name__)
try:
    with nearcast_server.serve((1, 2, 3)):
        pass
except nearcast_server.StartError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    for name in {
        one.removesuffix("*") for one in found["include"]
    }:  # a build leaves files beside sources
        ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-compile", "--no-index", "--target", str(folder), str(source)], check=True)
    return folder


@pytest.mark.processes
def test_it_is_the_same_as_in_a_checkout(installed):
    assert (installed / "nearcast_server" / "py.typed").exists()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(installed)],
        check=True,
        capture_output=True,
        text=True,
        cwd=installed.parent,
    )
    index, error = done.stdout.splitlines()
    assert index == "IqfPlusObjectIndex"
    assert error == "area is [1, 2, 3], must be lon_min,lat_min,lon_max,lat_max in degrees"
