"""Colours of the page, whose styles choose light or dark: charts name roles, the styles fill them.

matplotlib writes colours as they are given. Each role therefore has a unique colour, which is replaced in
the SVG by a variable of the page's styles.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

INK = "#010101"
MUTED = "#020202"
GRID = "#030303"
SURFACE = "#040404"
FIRST = "#050505"
SECOND = "#060606"
GOOD = "#070707"
BAD = "#080808"
PATH = "#090909"

_ROLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    SURFACE: "surface",
    FIRST: "first",
    SECOND: "second",
    GOOD: "good",
    BAD: "bad",
    PATH: "path",
}

# For pixels, which have no theme: colours that are visible on light and on dark paper.
ROAD = "#8b93a1"
TRAFFIC = "#0f9f9a"
OBJECT = "#e0663f"

STYLE: dict[Any, Any] = {
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9.0,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9.0,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.color": GRID,
    "ytick.labelcolor": MUTED,
    "ytick.left": False,
}
"""The style of every chart, as settings of matplotlib."""

_DPI = 150
"""The resolution of elements that are drawn as pixels: roads, paths, objects."""

_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def svg_of(figure: Figure, name: str, title: str) -> str:
    """Return a figure as SVG that can be embedded in a page beside others.

    Parameters
    ----------
    figure
        Drawn with `STYLE`, in colours of this module.
    name
        The name of the chart, the prefix of names within the SVG.
    title
        A description of the chart for screen readers.
    """
    text = StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(text, format="svg", dpi=_DPI, metadata=_NO_METADATA)
    found = text.getvalue()
    found = found[found.index("<svg") :]
    found = re.sub(r'\bid="', f'id="{name}-', found)
    found = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", found)
    for color, role in _ROLES.items():
        found = found.replace(color, f"var(--{role})")
    # The page sets the size.
    found = re.sub(r'\b(width|height)="[\d.]+pt"', "", found, count=2)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return found.replace("<svg", f'<svg role="img" aria-label="{label}" data-chart="{name}"', 1)
