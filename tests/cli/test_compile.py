"""`nearcast compile`: an image without kernels is no success."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.test_serve import COMMAND, ROOT


@pytest.mark.processes
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    file = tmp_path / "file"
    file.touch()
    done = subprocess.run(
        [*COMMAND, "compile"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(file)},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: compiled kernels cannot be kept in {file}/")
    assert done.stderr.endswith(": Not a directory\n")
