"""The reference of limits, from their declarations."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType

import server.limits
from nearcast import limits
from nearcast.v1 import device_service_pb2

_HEAD = """\
# Limits of a server

All limits are inclusive. `Status` has them under these names, and `nearcast status --all` prints them.
Those marked *sent* are in the welcome of every device. `make reference` writes this page from the
declarations (`nearcast/limits.py`, `server/limits.py`); a test compares them.
[The protocol](../protocol.md#limits) has the other limits, and [security](../security.md#limits) those of
each caller.

| limit | value | | meaning |
|---|---|---|---|
"""
_UNITS = {"_ms": "ms", "_m": "m", "_bytes": "bytes"}
_DAY_MS = 24 * 3600 * 1000


def page() -> str:
    """Return the page."""
    return _HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    meanings = _meanings(limits) | _meanings(server.limits)
    sent = device_service_pb2.Limits.DESCRIPTOR.fields_by_name
    values = server.limits.Limits()
    for field in fields(values):
        value = _shown(field.name, getattr(values, field.name))
        is_sent = "sent" if field.name in sent else ""
        yield f"| `{field.name}` | {value} | {is_sent} | {meanings[field.name]} |\n"


def _shown(name: str, value: float) -> str:
    stem = name.removesuffix("_max").removesuffix("_min")
    if stem.endswith("_ms") and value >= _DAY_MS:
        return f"{value / _DAY_MS:g} days"
    unit = next((unit for ending, unit in _UNITS.items() if stem.endswith(ending)), "")
    number = f"{value:,.0f}" if math.floor(value) == value else f"{value:g}"
    return f"{number} {unit}".rstrip()


def _meanings(module: ModuleType) -> dict[str, str]:
    """Return the docstring of each field of `Limits` in a module, on one line."""
    (declared,) = [
        node
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef) and node.name == "Limits"
    ]
    found: dict[str, str] = {}
    name = ""
    for node in declared.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found[name] = " ".join(str(node.value.value).split())
    return found
