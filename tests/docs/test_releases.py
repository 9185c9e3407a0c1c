"""All files that name the version name the same one (docs/releases.md)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PLACES = {
    "nearcast/pyproject.toml": r'^version = "(.*)"$',
    "packaging/server/pyproject.toml": r'^version = "(.*)"$',
    "docs/conf.py": r'^version = release = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
    "README.md": r"The version is ([\d.]+)\.",
    "docs/tutorial.md": r"`nearcast, version (.*)`",
    "docs/releases.md": r"the version is ([\d.]+),",
}


@pytest.mark.parametrize("name", PLACES)
def test_the_version_is_that_of_the_package(name):
    assert re.findall(PLACES[name], (ROOT / name).read_text(), re.MULTILINE) == [VERSION]


def test_the_page_names_every_place():
    page = (ROOT / "docs" / "releases.md").read_text()
    assert all(f"`{name}`" in page for name in PLACES if name != "docs/releases.md")


def test_the_oldest_python_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert f"| Python | {oldest} and newer |" in (ROOT / "docs" / "releases.md").read_text()
