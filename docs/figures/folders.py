"""Draws the folders of the code, in the order of the import contract of pyproject.toml."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROOT = Path(__file__).resolve().parents[2]
_CONTRACT = "Arrows point down"
_BOX, _EDGE = "#dbe9f6", "#0b5cad"
_HALF = 0.25
"""Half the height of a box."""
_X = {
    "cli": 1.6,
    "nearcast_server": 1.6,
    "simulator": -3.0,
    "streaming": -0.6,
    "gateway": 1.6,
    "server": 3.4,
    "cluster": -2.5,
    "identity": 2.6,
    "feeds": 1.25,
    "nearcast": -3.2,
    "engine": 3.2,
    "index": 2.2,
}
"""Columns, chosen so that no arrow crosses a box; 0 for the others."""
_PURPOSES = {
    "cli": "the command line",
    "nearcast_server": "the library, the installation",
    "bench": "experiments",
    "simulator": "towns, movement, replay",
    "streaming": "the job on Spark",
    "gateway": "WebSocket, HTTP",
    "server": "serves devices",
    "cluster": "the log of nodes",
    "identity": "tokens, rights, quotas",
    "feeds": "event logs",
    "nearcast": "the SDK",
    "engine": "matchers",
    "index": "data structures",
    "safe_region": "geometry, scoring, regions",
}


def layers() -> list[list[str]]:
    """Return the folders from top to bottom; those of a layer do not import each other."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (rows,) = [contract["layers"] for contract in contracts if contract["name"] == _CONTRACT]
    return [[name.strip() for name in row.split("|")] for row in rows]


@cache
def imports(folder: str) -> frozenset[str]:
    """Return the top folders that the modules of a folder import."""
    trees = [ast.parse(file.read_text()) for file in sorted((_ROOT / folder).rglob("*.py"))]
    found = {name.split(".")[0] for tree in trees for name in _imported(tree)}
    return frozenset(found & set(_PURPOSES) - {folder})


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def arrows() -> set[tuple[str, str]]:
    """Return the imports that do not follow from others, by a longer way between the same folders."""
    direct = {folder: imports(folder) for folder in _PURPOSES}
    return {
        (upper, lower)
        for upper, imported in direct.items()
        for lower in imported
        if not any(lower in _below(between, direct) for between in imported - {lower})
    }


def _below(folder: str, direct: Mapping[str, frozenset[str]]) -> set[str]:
    """Return all folders that a folder imports, directly or not."""
    return set(direct[folder]).union(*(_below(lower, direct) for lower in direct[folder]))


def folders() -> Figure:
    """Draw the layers, and the imports between them."""
    rows = layers()
    places = {name: (_X.get(name, 0.0), -float(depth)) for depth, row in enumerate(rows) for name in row}
    figure = Figure(figsize=(8.0, 5.4), layout="constrained")
    axes = figure.subplots()
    for upper, lower in sorted(arrows()):
        (x0, y0), (x1, y1) = places[upper], places[lower]
        style = {"arrowstyle": "-|>", "color": "#7a8ca0", "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=(x1, y1 + _HALF), xytext=(x0, y0 - _HALF), arrowprops=style)
    box = {"boxstyle": "round,pad=0.45", "facecolor": _BOX, "edgecolor": _EDGE}
    for name, (x, y) in places.items():
        axes.text(x, y, f"{name}\n{_PURPOSES[name]}", ha="center", va="center", fontsize=8, bbox=box)
    axes.set(xlim=(-4.0, 4.0), ylim=(-len(rows) + 0.5, 0.5))
    axes.axis("off")
    return figure
