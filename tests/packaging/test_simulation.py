"""Spark's executors import the packages of an installed server."""

from __future__ import annotations

import os

import pytest

from feeds.java import JavaNotFoundError, find_java
from tests.packaging.conftest import INSTALLED

pytestmark = [pytest.mark.processes, pytest.mark.spark]

SMALL = {"devices": 5, "seconds": 10}
LIBRARY = f"""
import nearcast_server
city = nearcast_server.simulate("city", **{SMALL})
print(city.trajectories.num_rows > 5, city.subscriptions.num_rows)
"""


@pytest.fixture
def variables(tmp_path) -> dict[str, str]:
    """Variables with a folder of kernels, and options of Java that start a short job sooner."""
    try:
        java = find_java()
    except JavaNotFoundError as error:
        pytest.skip(str(error))
    return {
        "JAVA_HOME": str(java.home),
        "SPARK_SUBMIT_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
    }


@pytest.mark.slow
def test_the_command_simulates(server, variables, tmp_path):
    arguments = ("--out=city", *(f"--{name}={value}" for name, value in SMALL.items()))
    done = server.run("nearcast", "simulate", *arguments, folder=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "city" / "world.json").is_file()


@pytest.mark.skipif(not INSTALLED, reason="takes as long again: part of make check-packages")
def test_a_program_simulates(server, variables, tmp_path):
    """Without the variables that the command sets for its processes."""
    done = server.run("python", "-c", LIBRARY, folder=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True 5\n"
