"""Local streets: a distorted dense grid in the centre, residential quarters between the arterials.

Each quarter is a face of the skeleton. It is filled with a grid of its own angle and spacing, which is
bent by a smooth warp and clipped to the face; thinning later turns grids into loops and dead ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from shapely import affinity

from simulator.chance import generator
from simulator.city.arterials import CENTRE
from simulator.city.street import Street, Warp
from simulator.network.traffic import RoadClass

_STEP_M = 35.0
_TOLERANCE_M = 4.0
_PIECE_M_MIN = 45.0
_AREA_M2_MIN = 20_000.0
_MAIN_EVERY = 4
"""In the centre every fourth street is a main street, every other minor one is one-way."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Character:
    """The layout of a quarter's streets."""

    angle: float
    spacing_m: float
    warp: Warp
    kept_share: float
    is_centre: bool


def local_streets(skeleton: Sequence[Street], seed: int, radius_m: float) -> list[Street]:
    """Fill the faces of the skeleton with streets.

    Parameters
    ----------
    skeleton
        The arterials.
    seed
        The seed of the city.
    radius_m
        The radius of the city.
    """
    ground = [street.line for street in skeleton if street.road_class is not RoadClass.MOTORWAY]
    faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(shapely.unary_union(ground))))
    centres = shapely.get_coordinates(shapely.centroid(faces))
    # Numbered from the inside out: their order must not depend on the geometry library.
    order = np.lexsort((np.round(centres[:, 0]), np.round(np.hypot(centres[:, 0], centres[:, 1]))))
    centre_angle = float(generator(seed, "roads", "centre").uniform(0.0, math.pi / 2.0))
    streets: list[Street] = []
    for number, face in enumerate(faces[order]):
        chance = generator(seed, "roads", "district", number)
        character = _character(face, chance, centre_angle, radius_m)
        if character is not None:
            streets += _ruled(face, character, chance)
    return streets


def _character(
    face: shapely.Polygon, chance: np.random.Generator, centre_angle: float, radius_m: float
) -> _Character | None:
    """Choose the layout of a quarter; None leaves it open: a park, fields."""
    x, y = face.centroid.x, face.centroid.y
    distance = math.hypot(x, y) / radius_m
    if face.area < _AREA_M2_MIN:
        return None
    if distance < 0.6 * CENTRE:
        return _Character(centre_angle, 118.0, Warp(chance, 28.0, 1_700.0), 0.94, is_centre=True)
    if chance.uniform() < 0.05 + 0.45 * distance**3:
        return None
    return _Character(
        angle=math.atan2(y, x) + float(chance.normal(0.0, 0.35)),
        spacing_m=float(110.0 + 75.0 * distance + chance.uniform(0.0, 70.0)),
        warp=Warp(chance, float(chance.uniform(18.0, 60.0)), float(chance.uniform(450.0, 950.0))),
        kept_share=float(np.clip(1.0 - 0.55 * distance, 0.4, 0.92)),
        is_centre=False,
    )


def _ruled(face: shapely.Polygon, character: _Character, chance: np.random.Generator) -> list[Street]:
    """Draw the streets of a quarter in two directions and clip the lines to it."""
    upright = affinity.rotate(face, -character.angle, origin=(0, 0), use_radians=True)
    x_min, y_min, x_max, y_max = upright.bounds
    streets: list[Street] = []
    for is_across in (False, True):
        low, high = (x_min, x_max) if is_across else (y_min, y_max)
        begin, end = (y_min, y_max) if is_across else (x_min, x_max)
        # Blocks are longer than wide.
        spacing_m = character.spacing_m * (1.45 if is_across else 1.0)
        phase = spacing_m * float(chance.uniform(0.3, 0.7))
        for i, offset in enumerate(np.arange(low + phase, high, spacing_m)):
            along = np.arange(begin - 2.0 * _STEP_M, end + 2.0 * _STEP_M, _STEP_M)
            level = np.full_like(along, offset + chance.normal(0.0, 0.06 * spacing_m))
            points = np.column_stack([level, along] if is_across else [along, level])
            course = _turned(character.warp(points), character.angle)
            streets += _cut(face, shapely.LineString(course), i, character)
    return streets


def _turned(points: Floats, angle: float) -> Floats:
    cos, sin = math.cos(angle), math.sin(angle)
    turned: Floats = points @ np.array([[cos, sin], [-sin, cos]])
    return turned


def _cut(
    face: shapely.Polygon, course: shapely.LineString, number: int, character: _Character
) -> list[Street]:
    is_main = character.is_centre and number % _MAIN_EVERY == _MAIN_EVERY // 2
    is_one_way = character.is_centre and not is_main and number % 2 == 1
    if is_one_way and number % _MAIN_EVERY == 1:
        course = shapely.reverse(course)
    road_class = RoadClass.TERTIARY if is_main else RoadClass.RESIDENTIAL
    kept_share = 1.0 if is_main else character.kept_share
    pieces = shapely.get_parts(shapely.intersection(face, course))
    return [
        Street(shapely.simplify(piece, _TOLERANCE_M), road_class, kept_share, is_one_way)
        for piece in pieces
        if piece.length >= _PIECE_M_MIN
    ]
