"""The skeleton of the city: motorways, ring roads, radial arterials and collectors.

Distances are fractions of the city's radius, so that a small town has the same plan as a large one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import shapely

from simulator.chance import generator
from simulator.city.street import Street
from simulator.network.traffic import RoadClass

CENTRE = 0.24
"""Radius of the centre, where the inner ring runs."""

MOTORWAY = 0.76
"""Radius of the motorway ring."""

RADIAL_COUNT = 9

_RINGS = (
    (CENTRE, RoadClass.PRIMARY),
    (0.38, RoadClass.TERTIARY),
    (0.52, RoadClass.SECONDARY),
    (0.66, RoadClass.TERTIARY),
    (MOTORWAY, RoadClass.MOTORWAY),
    (0.86, RoadClass.SECONDARY),
    (0.98, RoadClass.TERTIARY),
)
_STEP_M = 60.0
_TOLERANCE_M = 3.0

Floats = npt.NDArray[np.float64]


def arterials(seed: int, radius_m: float) -> list[Street]:
    """Draw the skeleton.

    Parameters
    ----------
    seed
        The seed of the city.
    radius_m
        The radius of the city.
    """
    shape = _Outline(generator(seed, "roads", "outline"))
    streets = [
        Street(_ring(shape, share * radius_m, number, seed, road_class), road_class)
        for number, (share, road_class) in enumerate(_RINGS)
    ]
    angles = _angles(generator(seed, "roads", "radials"))
    for i, angle in enumerate(angles):
        chance = generator(seed, "roads", "radial", i)
        road_class = RoadClass.SECONDARY if i % 3 == 2 else RoadClass.PRIMARY  # noqa: PLR2004
        streets.append(Street(_radial(chance, angle, CENTRE, 1.0, radius_m), road_class))
        # Between two arterials a collector runs outwards.
        between = angle + 0.5 * ((angles[(i + 1) % len(angles)] - angle) % (2.0 * np.pi))
        streets.append(Street(_radial(chance, between, CENTRE, 0.96, radius_m), RoadClass.TERTIARY))
    ringway = next(one.line for one in streets if one.road_class is RoadClass.MOTORWAY)
    for i, angle in enumerate(angles[:: RADIAL_COUNT // 3] + 0.16):
        chance = generator(seed, "roads", "spur", i)
        spur = _radial(chance, angle, MOTORWAY - 0.05, 1.08, radius_m)
        outside = shapely.difference(spur, shapely.Polygon(ringway))
        longest = max(shapely.get_parts(outside), key=shapely.length)
        streets.append(Street(longest, RoadClass.MOTORWAY))
    return streets


class _Outline:
    """A closed curve about the centre that all rings resemble: cities are not round."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._counts = np.array([2, 3, 4, 5, 7])
        self._sizes = chance.uniform(0.3, 1.0, 5) * np.array([0.05, 0.035, 0.02, 0.015, 0.008])
        self._phases = chance.uniform(0.0, 2.0 * np.pi, 5)

    def __call__(self, angles: Floats, turn: float) -> Floats:
        waves = np.sin(np.outer(angles, self._counts) + self._phases + 0.5 * turn)
        shares: Floats = 1.0 + waves @ self._sizes
        return shares


def _ring(
    shape: _Outline, radius_m: float, number: int, seed: int, road_class: RoadClass
) -> shapely.LineString:
    """Draw a road around the centre; collectors leave a gap."""
    chance = generator(seed, "roads", "ring", number)
    begin = chance.uniform(0.0, 2.0 * np.pi)
    gap = chance.uniform(0.6, 1.8) if road_class is RoadClass.TERTIARY else 0.0
    span = 2.0 * np.pi - gap
    angles = begin + np.linspace(0.0, span, max(48, int(span * radius_m / _STEP_M)))
    radii_m = radius_m * shape(angles, float(number))
    points = np.column_stack([radii_m * np.cos(angles), radii_m * np.sin(angles)])
    if gap == 0.0:
        points[-1] = points[0]
    return shapely.simplify(shapely.LineString(points), _TOLERANCE_M)


def _angles(chance: np.random.Generator) -> Floats:
    even = np.arange(RADIAL_COUNT) / RADIAL_COUNT
    jitter = chance.uniform(-0.2, 0.2, RADIAL_COUNT) / RADIAL_COUNT
    found: Floats = 2.0 * np.pi * (even + jitter + chance.uniform())
    return found


def _radial(
    chance: np.random.Generator, angle: float, begin: float, end: float, radius_m: float
) -> shapely.LineString:
    """Draw a road outwards that sways a little."""
    shares = np.arange(begin - 0.03, end, _STEP_M / radius_m)
    sway = chance.uniform(-0.10, 0.10) * np.sin(2.5 * np.pi * (shares - begin))
    sway += chance.uniform(-0.05, 0.05) * np.sin(7.0 * np.pi * (shares - begin))
    angles = angle + sway
    points = np.column_stack([shares * np.cos(angles), shares * np.sin(angles)]) * radius_m
    return shapely.simplify(shapely.LineString(points), _TOLERANCE_M)
