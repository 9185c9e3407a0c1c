"""Our wheels, and environments with them: linked here, or installed by `make check-packages`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.environment import Environment, linked_environment
from tests.packaging.programs import Program

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = os.environ.get("NEARCAST_TEST_PACKAGES")
"""Folder with the environments `sdk` and `server`."""

NAIVE = ("--object-index=naive", "--subscription-index=naive", "--clause-index=naive")
"""Indexes with few kernels."""


@pytest.fixture(scope="session")
def wheels(tmp_path_factory) -> tuple[Path, Path]:
    """The wheels of the SDK and of the server."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run([sys.executable, str(ROOT / "packaging" / "build_wheels.py"), str(folder)], check=True)
    (sdk,), (server,) = folder.glob("nearcast-*.whl"), folder.glob("nearcast_server-*.whl")
    return sdk, server


@pytest.fixture(scope="session")
def sdk(tmp_path_factory, request) -> Environment:
    """An environment with the SDK."""
    if INSTALLED:
        return Environment(Path(INSTALLED) / "sdk")
    wheel, _ = request.getfixturevalue("wheels")
    return linked_environment(tmp_path_factory.mktemp("sdk"), [wheel], "nearcast")


@pytest.fixture(scope="session")
def server(tmp_path_factory, request) -> Environment:
    """An environment with the server and its extras."""
    if INSTALLED:
        return Environment(Path(INSTALLED) / "server")
    both = request.getfixturevalue("wheels")
    extras = "nearcast-server[gateway,simulator,bridge,tracing]"
    return linked_environment(tmp_path_factory.mktemp("server"), both, extras)


@pytest.fixture(scope="session")
def bare(tmp_path_factory, wheels) -> Environment:
    """An environment with the server and no extra."""
    return linked_environment(tmp_path_factory.mktemp("bare"), wheels, "nearcast-server")


@pytest.fixture(scope="session")
def kernels(tmp_path_factory, server) -> tuple[str, str]:
    """A folder of compiled kernels, and the output of `nearcast compile` that filled it."""
    folder = str(tmp_path_factory.mktemp("kernels"))
    done = server.run("nearcast", "compile", *NAIVE, NUMBA_CACHE_DIR=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def running(server, kernels) -> Iterator[Program]:
    """A server that was started after `nearcast compile`."""
    arguments = ("--area=14.18,35.80,14.58,36.09", "--store=:memory:", "--port=0", *NAIVE)
    with Program(server, "serving on ", "serve", *arguments, NUMBA_CACHE_DIR=kernels[0]) as program:
        yield program
