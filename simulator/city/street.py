"""A street as the generator draws it, on a plane in metres about the city's centre."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from simulator.network.traffic import RoadClass

Floats = npt.NDArray[np.float64]


class Street(NamedTuple):
    """A polyline with the attributes that its pieces inherit.

    Parameters
    ----------
    line
        Its course.
    road_class
        Its class.
    kept_share
        Fraction of its pieces that stay when the network is thinned, beyond those that connect it.
    is_one_way
        Whether vehicles may use it only in the direction in which it is drawn.
    """

    line: shapely.LineString
    road_class: RoadClass
    kept_share: float = 1.0
    is_one_way: bool = False


class Warp:
    """A smooth displacement of the plane, which bends a regular grid into streets.

    Parameters
    ----------
    chance
        The generator of its phases.
    amplitude_m
        The maximum displacement of a point along each axis.
    wavelength_m
        Length of the longer of its two waves.
    """

    def __init__(self, chance: np.random.Generator, amplitude_m: float, wavelength_m: float) -> None:
        self._amplitude_m = amplitude_m
        angles = chance.uniform(0.0, np.pi, size=4)
        lengths_m = wavelength_m * np.array([1.0, 1.0, 0.53, 0.53])
        self._waves = 2.0 * np.pi / lengths_m * np.stack([np.cos(angles), np.sin(angles)])
        self._phases = chance.uniform(0.0, 2.0 * np.pi, size=4)

    def __call__(self, points: Floats) -> Floats:
        """Displace points of shape (n, 2)."""
        waves = np.sin(points @ self._waves + self._phases)
        shift = self._amplitude_m * (0.7 * waves[:, :2] + 0.3 * waves[:, 2:])
        displaced: Floats = points + shift
        return displaced
