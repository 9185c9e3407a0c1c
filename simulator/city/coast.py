"""The sea: one side of the city ends at a coast, along which a promenade runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry

from simulator.chance import generator
from simulator.city.street import Street
from simulator.network.traffic import RoadClass

DISTANCE = 0.5
"""The distance from the centre to the coast, as a fraction of the city's radius."""

_STEP_M = 60.0
_TOLERANCE_M = 3.0
_PIECE_M_MIN = 150.0


@dataclass(frozen=True, slots=True)
class Coast:
    """The coast of the city.

    Parameters
    ----------
    promenade
        The road along the coast.
    sea
        The area beyond the coast.
    """

    promenade: Street
    sea: BaseGeometry

    @classmethod
    def of(cls, seed: int, radius_m: float) -> Coast:
        """Draw a coast with bays.

        Parameters
        ----------
        seed
            The seed of the coast.
        radius_m
            The radius of the city.
        """
        chance = generator(seed, "roads", "coast")
        along = np.arange(-2.0, 2.0, _STEP_M / radius_m)
        phases = chance.uniform(0.0, 2.0 * np.pi, 3)
        out = DISTANCE + 0.09 * np.sin(3.0 * along + phases[0])
        out += 0.05 * np.sin(7.0 * along + phases[1]) + 0.012 * np.sin(19.0 * along + phases[2])
        # Towards its ends the coast turns away: the city lies on a cape.
        out -= 0.22 * along * along
        angle = chance.uniform(0.0, 2.0 * np.pi)
        seaward = np.array([np.cos(angle), np.sin(angle)])
        across = np.array([-seaward[1], seaward[0]])
        shore = radius_m * (np.outer(out, seaward) + np.outer(along, across))
        line = shapely.simplify(shapely.LineString(shore), _TOLERANCE_M)
        far = radius_m * np.array([3.0 * seaward + 2.0 * across, 3.0 * seaward - 2.0 * across])
        sea = shapely.make_valid(shapely.Polygon(np.vstack([line.coords, far])))
        within = shapely.intersection(line, shapely.Point(0.0, 0.0).buffer(radius_m))
        longest = max(shapely.get_parts(within), key=shapely.length)
        return cls(Street(longest, RoadClass.PRIMARY), sea)

    def on_land(self, streets: Sequence[Street]) -> list[Street]:
        """Clip streets at the coast, and add the promenade at which they end."""
        dry = [
            street._replace(line=piece)
            for street in streets
            for piece in shapely.get_parts(shapely.difference(street.line, self.sea))
            if piece.length >= _PIECE_M_MIN
        ]
        return [*dry, self.promenade]

    def water(self, half_m: float) -> list[npt.NDArray[np.float64]]:
        """Return the outlines of the sea, closed rings of shape (n, 2), within a square."""
        seen = shapely.intersection(self.sea, shapely.box(-half_m, -half_m, half_m, half_m))
        return [
            shapely.get_coordinates(part.exterior)
            for part in shapely.get_parts(seen)
            if isinstance(part, shapely.Polygon)
        ]
