"""Colours of the page, which decides about light and dark: charts name roles, its styles fill them.

matplotlib writes colours as they are given. So each role has a colour that nothing else has, which is
replaced in the SVG by a variable of the page's styles.
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

# In pixels, which have no theme: what can be seen on light and on dark paper.
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
"""Of every chart, as settings of matplotlib."""

_DPI = 150
"""Of what is drawn in pixels: roads, paths, objects."""

_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


def svg_of(figure: Figure, name: str, title: str) -> str:
    """Return a figure as SVG that can stand in a page beside others.

    Parameters
    ----------
    figure
        Drawn with `STYLE`, in colours of this module.
    name
        Of the chart; names within the SVG begin with it.
    title
        What is to be seen, for those who cannot.
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
    # The page says how large it is.
    found = re.sub(r'\b(width|height)="[\d.]+pt"', "", found, count=2)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return found.replace("<svg", f'<svg role="img" aria-label="{label}" data-chart="{name}"', 1)
