"""`.ci/oldest-python`: which Python `.ci/run` makes its environment with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / ".ci" / "oldest-python"


def oldest(*folders) -> subprocess.CompletedProcess[str]:
    """Run it on this machine's Pythons, or on those of folders."""
    of_folders = {"PYTHON_FOLDERS": os.pathsep.join(map(str, folders))} if folders else {}
    return subprocess.run(
        [PROGRAM], env={**os.environ, **of_folders}, capture_output=True, text=True, check=False
    )


def put(path, script) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.processes
def test_the_oldest_of_all_is_chosen(tmp_path):
    """What is first on the path does not matter, and 3.9 is before 3.11 only as a text."""
    put(tmp_path / "first" / "python3", "echo 3.12.10")
    put(tmp_path / "first" / "python3.13", "echo 3.13.0")
    expected = put(tmp_path / "second" / "python3", "echo 3.11.2")
    put(tmp_path / "second" / "python3.11", "echo 3.11.10")
    put(tmp_path / "second" / "python3.10", "exit 1")
    put(tmp_path / "second" / "python3-config", "echo 3.11.0")
    done = oldest(tmp_path / "first", tmp_path / "none", tmp_path / "second")
    assert (done.stdout, done.stderr, done.returncode) == (f"{expected}\n", "", 0)


@pytest.mark.processes
def test_without_a_suitable_python_it_fails_with_a_message(tmp_path):
    put(tmp_path / "python3", "exit 1")
    done = oldest(tmp_path)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("no Python 3.11 or newer that can make an environment")


@pytest.mark.processes
def test_the_chosen_python_is_supported_and_no_environment():
    done = oldest()
    assert done.returncode == 0, done.stderr
    program = "import sys; print(*sys.version_info[:2], sys.prefix == sys.base_prefix)"
    python = done.stdout.strip()
    facts = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    major, minor, is_base = facts.stdout.split()
    assert (3, 11) <= (int(major), int(minor)) <= sys.version_info[:2]
    assert is_base == "True"


def test_the_run_makes_its_environment_with_it():
    script = (PROGRAM.parent / "run").read_text()
    assert "PYTHON=$(.ci/oldest-python)\nexport PYTHON\n" in script
    assert script.index("export PYTHON") < script.index("make ")
