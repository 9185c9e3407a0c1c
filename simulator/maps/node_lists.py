"""Reads the list of nodes of a road network, in any layout. About 5 microseconds a line."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from safe_region.earth.frame import LATITUDE_MAX_DEG
from simulator.maps import brinkhoff, dimacs
from simulator.maps.errors import MapError
from simulator.maps.files import Layout, RoadFiles
from simulator.maps.osm import Progress
from simulator.maps.placement import Columns, Placement
from simulator.maps.rows import Row, csv_rows, plain_rows

STAGE = "map: nodes"

REPORT_EVERY = 20_000

_ID_NAMES = ("osmid", "node_id", "id")

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


class NodeList(NamedTuple):
    """The list of nodes.

    Parameters
    ----------
    ids
        Their ids in the file.
    xs, ys
        Their coordinates as in the file; fractions of a degree are converted to degrees.
    numbers
        The position of each id in the above.
    """

    ids: Longs
    xs: Floats
    ys: Floats
    numbers: dict[int, int]


class _Source(NamedTuple):
    """The lines of a file, and the names of their fields."""

    rows: Iterator[Row]
    name: str
    columns: Columns
    deg_per_unit: float = 1.0


def read_nodes(files: RoadFiles, placement: Placement, progress: Progress) -> NodeList:
    """Read the nodes of a network.

    Parameters
    ----------
    files
        The files of the network.
    placement
        Whether their coordinates are degrees.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If the file cannot be read, a line is invalid, or there is none.
    """
    progress(STAGE, 0, 0)
    source = _source(files, placement)
    numbers: dict[int, int] = {}
    xs, ys = array("d"), array("d")
    for row in source.rows:
        node = row.integer(source.name)
        if node in numbers:
            raise row.error(source.name, f"must differ from the ids of all {row.kind}s before it")
        x, y = placement.read(row, source.columns, LATITUDE_MAX_DEG, source.deg_per_unit)
        numbers[node] = len(xs)
        xs.append(x)
        ys.append(y)
        if len(xs) % REPORT_EVERY == 0:
            progress(STAGE, len(xs), 0)
    if not numbers:
        raise MapError(f"{files.nodes} has no nodes")
    progress(STAGE, len(xs), len(xs))
    return NodeList(np.array(list(numbers), np.int64), np.array(xs), np.array(ys), numbers)


def _source(files: RoadFiles, placement: Placement) -> _Source:
    plain = Columns("x", "y")
    if files.layout is Layout.NUMBERS:
        return _Source(plain_rows(files.nodes, ("id", "x", "y")), "id", plain)
    if files.layout is Layout.BRINKHOFF:
        return _Source(brinkhoff.node_rows(files.nodes), "id", plain)
    if files.layout is Layout.DIMACS:
        return _Source(dimacs.vertex_rows(files.nodes), "id", plain, dimacs.DEG_PER_UNIT)
    header, rows = csv_rows(files.nodes)
    x_names, y_names = placement.columns()
    columns = Columns(header.require(x_names, "its position"), header.require(y_names, "its position"))
    return _Source(rows, header.require(_ID_NAMES, "the id of a node"), columns)
