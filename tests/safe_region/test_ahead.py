"""Kernels that cannot be compiled ahead: an error if they must be kept, else a warning."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

_KERNELS = """
import os, sys
from safe_region.jit import kernel

if sys.argv[0] == "-c":  # in the process that compiles
    os._exit(3)

@kernel
def doubled(value):
    return 2 * value
"""
_TRY = """
import kernels
from safe_region.jit.ahead import NotKeptError, compile_ahead

try:
    compile_ahead(lambda: kernels.doubled(2), must_keep=True)
except NotKeptError as error:
    print("error:", error)
print(compile_ahead(lambda: kernels.doubled(2)), kernels.doubled(3))
"""


@pytest.mark.processes
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="Python compiles nothing")
def test_a_process_that_ends_before_it_has_compiled(tmp_path):
    (tmp_path / "kernels.py").write_text(_KERNELS)
    (tmp_path / "try.py").write_text(_TRY)
    done = subprocess.run(
        [sys.executable, tmp_path / "try.py"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reason = "a process that compiled kernels ended with status 3"
    assert done.stdout.splitlines() == [f"error: {reason}", "1 6"]
    assert done.stderr.splitlines().count(reason) == 1
