"""Geometry as well-known binary, and the box around each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import shapely

from simulator.export.features import POINT

BOX = pa.struct([(name, pa.float64()) for name in ("xmin", "ymin", "xmax", "ymax")])


def geometry_of(coordinates: pa.Array, kind: str) -> tuple[pa.Array, pa.Array]:
    """Return well-known binary and boxes.

    Parameters
    ----------
    coordinates
        Lists of [lon, lat], or of lists of these.
    kind
        Point or LineString.
    """
    if kind == POINT:
        corners = coordinates.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
        found = np.atleast_1d(shapely.points(corners))
    else:
        counts = np.diff(coordinates.offsets.to_numpy())
        corners = coordinates.flatten().flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
        owners = np.repeat(np.arange(len(counts)), counts)
        found = np.atleast_1d(shapely.linestrings(corners, indices=owners))
    boxes = shapely.bounds(found)
    columns = [pa.array(boxes[:, number]) for number in range(boxes.shape[1])]
    wkb = pa.array(list(shapely.to_wkb(found)), pa.binary())
    return wkb, pa.StructArray.from_arrays(columns, fields=list(BOX))
