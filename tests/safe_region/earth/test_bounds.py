"""With NUMBA_BOUNDSCHECK kernels and all that they call refuse to read and write beyond an array."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

pytestmark = pytest.mark.processes

_KERNELS = """
import numpy as np

from safe_region.jit import array_leaf, kernel, leaf


@kernel
def read(table, at):
    return table[at]


@leaf
def _of(table, at):
    return table[at]["x"]


@kernel
def read_in_leaf(table, at):
    return _of(table, at)


@leaf
def _set(table, at):
    table[at]["x"] = 1.0


@kernel
def write_in_leaf(table, at):
    _set(table, at)
    return 0.0


@array_leaf
def _some(table, at):
    found = np.zeros(3)
    found[0] = table[at]["x"]
    return found


@kernel
def read_in_array_leaf(table, at):
    return _some(table, at)[0]
"""

_TRY = """
import numpy as np

import kernels

around = np.ones(40, dtype=[("x", np.float64)])
table = around[10:13]  # what lies beyond is ours, too: nothing is broken where it is not refused
for name in ("read", "read_in_leaf", "write_in_leaf", "read_in_array_leaf"):
    function = getattr(kernels, name)
    function(table, 2)
    try:
        function(table, 3)
    except IndexError:
        print(name)
"""

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="Python always checks")


def refused(folder, cache, *, is_checked):
    """Run the kernels with an index that is too large; return the names of those that refuse it."""
    (folder / "kernels.py").write_text(_KERNELS)
    (folder / "try.py").write_text(_TRY)
    done = subprocess.run(
        [sys.executable, folder / "try.py"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_BOUNDSCHECK": str(int(is_checked))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@needs_jit
def test_bounds_are_checked_on_request_and_from_one_cache(tmp_path):
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    every = ["read", "read_in_leaf", "write_in_leaf", "read_in_array_leaf"]
    for is_checked in (False, True, False):  # what was compiled before must not be taken for it
        assert refused(folder, cache, is_checked=is_checked) == (every if is_checked else [])
