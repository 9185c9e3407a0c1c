"""The programs of docs/library.md print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "library.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN = re.findall(r"It prints[^\n]*\n\n```\n(.*?)```", PAGE, re.DOTALL)


def printed(program: str, folder: Path) -> str:
    file = folder / "program.py"
    file.write_text(program.replace('"runs/', f'"{folder}/'))
    done = subprocess.run(
        [sys.executable, str(file)], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout


def test_each_program_shows_what_it_prints():
    assert len(PROGRAMS) == len(SHOWN) == 2


@pytest.mark.processes
def test_an_index(tmp_path):
    assert printed(PROGRAMS[0], tmp_path) == SHOWN[0]


@pytest.mark.slow
@pytest.mark.spark
def test_a_simulation(tmp_path):
    assert printed(PROGRAMS[1], tmp_path) == SHOWN[1]
