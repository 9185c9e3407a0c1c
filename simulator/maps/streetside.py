"""Places for a network without any: beside its edges, with the generated city's words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from safe_region.earth.frame import Frame
from simulator.chance import uniforms
from simulator.city.places import TABLE, Fronts, described
from simulator.maps.network import LENGTH_M_MIN, Network
from simulator.network.traffic import RoadClass

Floats = npt.NDArray[np.float64]


def streetside_places(network: Network, frame: Frame, count: int, seed: int) -> pa.Table:
    """Return a places table: each place is beside an edge, and every edge is equally likely.

    There are therefore more places where streets lie close together, as in a town. Motorways have none,
    unless there are no other edges.

    Parameters
    ----------
    network
        The edges.
    frame
        The projection of the area that contains the network.
    count
        The number of places.
    seed
        The seed of the places.
    """
    edges = np.flatnonzero(~network.is_open_to(frozenset({RoadClass.MOTORWAY})))
    if not len(edges):
        edges = np.arange(len(network.sources))
    ids = np.arange(count)
    drawn = edges[(uniforms(seed, TABLE, "edge", ids) * len(edges)).astype(np.int64)]
    xs_m = (network.lons - frame.lon0_deg) * frame.x_m_per_deg
    ys_m = (network.lats - frame.lat0_deg) * frame.y_m_per_deg
    sources, targets = network.sources[drawn], network.targets[drawn]
    dx_m, dy_m = xs_m[targets] - xs_m[sources], ys_m[targets] - ys_m[sources]
    lengths_m: Floats = np.maximum(np.sqrt(dx_m * dx_m + dy_m * dy_m), LENGTH_M_MIN)
    fronts = Fronts(xs_m[sources], ys_m[sources], xs_m[targets], ys_m[targets], lengths_m)
    return described(ids, *fronts.beside(ids, seed), frame, seed)
