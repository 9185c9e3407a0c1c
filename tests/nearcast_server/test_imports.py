"""Importing `nearcast_server` imports no array library, no Spark and no server."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys

before = set(sys.modules)
import nearcast_server
{call}
names = set(sys.modules) - before
print(*sorted({{name.partition(".")[0] for name in names}} - set(sys.stdlib_module_names)))
print(*(name for name in names if name.startswith("index.published")))
"""


def imported(call=""):
    command = [sys.executable, "-c", PROGRAM.format(call=call)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    packages, published = done.stdout.splitlines()
    return set(packages.split()), published


@pytest.mark.processes
def test_the_package_alone_imports_itself_and_the_install_hint():
    assert imported() == ({"nearcast_server", "safe_region"}, "")


@pytest.mark.processes
def test_an_index_brings_arrays_and_no_published_structure():
    packages, published = imported('nearcast_server.make_index("iqf-plus")')
    assert {"numba", "numpy", "index"} <= packages
    assert not {"grpc", "pyarrow", "pyspark", "server", "simulator"} & packages
    assert published == ""
