"""Sections of parameters in docstrings have the parameters of the signature, in its order.

The docstring of a class documents the parameters of `__init__`, or the fields that make it. A docstring
need not have such a section.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
FILES = [
    file
    for package in PACKAGES
    for file in sorted((ROOT / package).rglob("*.py"))
    if not file.is_relative_to(ROOT / "nearcast" / "v1")
]
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)


def documented(docstring: str | None) -> list[str] | None:
    """Return the parameters of a docstring; None without a section for them."""
    section = SECTION.search(docstring or "")
    if section is None:
        return None
    heads = [line for line in section[1].splitlines() if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for head in heads for name in head.split(" : ")[0].split(",")]


def parameters(function: FUNCTIONS, *, is_method: bool) -> list[str]:
    """Return the parameters of a function in the order of its signature, without `self` and `cls`."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    bound = is_method and not any(
        isinstance(one, ast.Name) and one.id == "staticmethod" for one in function.decorator_list
    )
    rest = [one for one in (given.vararg, *given.kwonlyargs, given.kwarg) if one is not None]
    return [one.arg for one in (*plain[bound:], *rest)]


def fields(class_: ast.ClassDef) -> list[str]:
    """Return the parameters of a class: of `__init__`, or its public fields."""
    for one in class_.body:
        if isinstance(one, FUNCTIONS) and one.name in {"__init__", "__new__"}:
            return parameters(one, is_method=True)
    return [
        one.target.id
        for one in class_.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and not one.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(one.annotation)
    ]


def has_fields(node: ast.AST) -> bool:
    """Whether a class is made of fields, which are given by name: a docstring may group them."""
    return isinstance(node, ast.ClassDef) and not any(
        isinstance(one, FUNCTIONS) and one.name == "__init__" for one in node.body
    )


def findings(node: ast.AST, place: str, *, is_method: bool = False):
    """Yield the functions and classes below a node whose docstring differs from the signature."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.ClassDef | FUNCTIONS):
            names = documented(ast.get_docstring(one))
            is_class = isinstance(one, ast.ClassDef)
            expected = fields(one) if is_class else parameters(one, is_method=is_method)
            if has_fields(one):
                names, expected = names and sorted(names), sorted(expected)
            if names is not None and names != expected:
                yield f"{place}:{one.lineno} {one.name}: {names} for {expected}"
            yield from findings(one, place, is_method=is_class)
        else:
            yield from findings(one, place, is_method=is_method)


@pytest.mark.parametrize("package", PACKAGES)
def test_sections_of_parameters_are_those_of_signatures(package):
    found = []
    for file in FILES:
        if file.is_relative_to(ROOT / package):
            name = file.relative_to(ROOT).as_posix()
            found += findings(ast.parse(file.read_text()), name)
    assert not found, "\n".join(found)


def test_a_difference_is_found():
    docstring = '"""Add.\n\n    Parameters\n    ----------\n    b, a\n        Numbers.\n    """'
    source = f"def add(a, b):\n    {docstring}\n\nclass Sum:\n    {docstring}\n    a: int\n    c: int\n"
    assert [line.split()[1] for line in findings(ast.parse(source), "x")] == ["add:", "Sum:"]
