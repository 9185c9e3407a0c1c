"""The temporary files of `make fuzz` are deleted, also if it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("atheris")
pytestmark = pytest.mark.processes


def fuzz(folder, inputs):
    """Start the target that has a folder; its temporary files are in `folder / "tmp"`."""
    (folder / "tmp").mkdir()
    arguments = ("--target=reloads", f"--inputs={inputs}", f"--folder={folder / 'runs'}")
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz", *arguments],
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_nothing_is_left(tmp_path):
    process = fuzz(tmp_path, 5_000)
    assert process.wait() == 0
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_an_interruption(tmp_path, number):
    process = fuzz(tmp_path, 10**12)
    while not list((tmp_path / "tmp").glob("*/*/keys.json")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, number)  # as of a terminal, or a service: all of its processes
    assert process.wait() != 0
    assert list((tmp_path / "tmp").iterdir()) == []
