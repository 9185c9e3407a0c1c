"""Colours and pens of the map."""

from __future__ import annotations

from typing import NamedTuple

from simulator.network.traffic import RoadClass

PAPER = "#f6f4ef"
INK = "#33302b"
WATER = "#d5e5ea"
TRAFFIC = "#0f8b8d"
OBJECT = "#e4572e"
PATH = "#3d2b8f"
RANGE = "#1b6b3a"
STATIONARY = "#1d4ed8"
REGION = "#7a5cff"
REGION_LAST = "#d6409f"
EDGE = "#cfc8ba"


class Pen(NamedTuple):
    """The pen of a class of road, on the map of the whole city."""

    color: str
    width_pt: float
    casing: str


PENS = {
    RoadClass.FOOTWAY: Pen("#e3d3c4", 0.3, ""),
    RoadClass.CYCLEWAY: Pen("#cbd6b9", 0.35, ""),
    RoadClass.SERVICE: Pen("#dbd4c7", 0.35, ""),
    RoadClass.RESIDENTIAL: Pen("#d3ccbf", 0.5, ""),
    RoadClass.TERTIARY: Pen("#c4bbaa", 0.9, ""),
    RoadClass.SECONDARY: Pen("#f8ebc2", 1.6, "#cdbd8d"),
    RoadClass.PRIMARY: Pen("#f8d9a4", 2.1, "#cfa96c"),
    RoadClass.MOTORWAY: Pen("#f0b4a0", 3.0, "#c27c66"),
}
"""Least important first: later ones lie on top."""
