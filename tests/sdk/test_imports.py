"""`import nearcast` imports grpcio and protobuf, and nothing else that is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys

import google.protobuf
import grpc

before = set(sys.modules)
import nearcast
import nearcast.expressions
import nearcast.sync

own = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(own - set(sys.stdlib_module_names)))
"""


@pytest.mark.processes
def test_it_imports_two_packages():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"google", "grpc", "nearcast", "safe_region"}
