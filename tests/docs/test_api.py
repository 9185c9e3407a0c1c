"""docs/api.md has every public name, and each has a docstring."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import nearcast
import nearcast.sync
import nearcast_server

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
PACKAGES = [nearcast, nearcast.sync, nearcast_server]


def sections():
    """The names that the page lists, by package."""
    found, package = {}, ""
    for line in PAGE.splitlines():
        if match := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
            package = match[1]
        elif match := re.match(r"\.\. auto(?:class|function|exception|data):: (\S+)", line):
            found.setdefault(package, []).append(match[1])
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.__name__)
def test_the_page_has_every_public_name_once(package):
    names = set(package.__all__) - {"sync"}  # which has a section of its own
    assert sorted(sections()[package.__name__]) == sorted(names)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.__name__)
def test_everything_public_has_a_docstring(package):
    for name in package.__all__:
        found = getattr(package, name)
        if not inspect.isclass(found) and not inspect.isfunction(found):
            continue  # an alias of types
        assert inspect.getdoc(found), name
        for member, value in vars(found).items():
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"
