"""Places of the generated city: beside streets, in the centre and along local high streets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from safe_region.earth.frame import Frame
from simulator import schemas
from simulator.chance import generator, uniforms
from simulator.city.vocabulary import CATEGORIES, NAMES
from simulator.network.traffic import RoadClass
from simulator.parameters import SimulationParameters

TABLE = "places"

KEYWORDS_MIN = 3
KEYWORDS_MAX = 6

_HIGH_STREET_COUNT = 22
_HIGH_STREET_SIGMA_M = 260.0
_CENTRE_SIGMA = 0.13
"""Spread of the centre's places, as a fraction of the city's radius."""

_SETBACK_M = (7.0, 16.0)
_ATTRACTION = {
    RoadClass.MOTORWAY: 0.0,
    RoadClass.PRIMARY: 1.6,
    RoadClass.SECONDARY: 2.2,
    RoadClass.TERTIARY: 2.0,
    RoadClass.RESIDENTIAL: 0.8,
}
"""Shop fronts per metre of street, relative."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]


def places_table(roads: pa.Table, parameters: SimulationParameters, frame: Frame) -> pa.Table:
    """Put places beside streets and give them a category, a name and keywords.

    Parameters
    ----------
    roads
        The roads table.
    parameters
        Seed, number of places and size of the city.
    frame
        Its centre is the city's.
    """
    ids = np.arange(parameters.places)
    seed = parameters.seed
    xs_m, ys_m = _positions(roads, ids, parameters, frame)
    return described(ids, xs_m, ys_m, frame, seed)


def described(ids: Longs, xs_m: Floats, ys_m: Floats, frame: Frame, seed: int) -> pa.Table:
    """Return the places table of positions on the plane: each gets a category, a name and keywords.

    Parameters
    ----------
    ids
        Their ids, from 0, which determine their random numbers.
    xs_m, ys_m
        Their positions.
    frame
        The projection of the plane.
    seed
        The seed of the words.
    """
    weights = np.array([category.weight for category in CATEGORIES])
    bounds = np.cumsum(weights / weights.sum())[:-1]
    categories = np.searchsorted(bounds, uniforms(seed, TABLE, "category", ids), side="right")
    columns = {
        "place_id": ids,
        "lon": frame.lon0_deg + xs_m / frame.x_m_per_deg,
        "lat": frame.lat0_deg + ys_m / frame.y_m_per_deg,
        "name": _names(ids, categories, seed),
        "category": [CATEGORIES[i].name for i in categories],
        "keywords": _keywords(ids, categories, seed),
    }
    return pa.table(columns, schema=schemas.arrow_schema(schemas.PLACES))


class Fronts(NamedTuple):
    """A straight piece of street for each place, on the plane.

    Parameters
    ----------
    x0_m, y0_m, x1_m, y1_m
        Its start and end.
    lengths_m
        The distance between the two.
    """

    x0_m: Floats
    y0_m: Floats
    x1_m: Floats
    y1_m: Floats
    lengths_m: Floats

    def beside(self, ids: Longs, seed: int) -> tuple[Floats, Floats]:
        """Draw a point along each piece and a distance from the kerb, on its right."""
        along = uniforms(seed, TABLE, "along", ids)
        low, high = _SETBACK_M
        setback_m = low + (high - low) * uniforms(seed, TABLE, "setback", ids)
        dx_m, dy_m = self.x1_m - self.x0_m, self.y1_m - self.y0_m
        xs_m = self.x0_m + along * dx_m + setback_m * dy_m / self.lengths_m
        ys_m = self.y0_m + along * dy_m - setback_m * dx_m / self.lengths_m
        return xs_m, ys_m


def _positions(
    roads: pa.Table, ids: Longs, parameters: SimulationParameters, frame: Frame
) -> tuple[Floats, Floats]:
    """Draw an edge by its attraction, then a point beside it."""
    seed = parameters.seed
    column = {name: roads[name].to_numpy() for name in roads.column_names}
    x0 = (column["source_lon"] - frame.lon0_deg) * frame.x_m_per_deg
    y0 = (column["source_lat"] - frame.lat0_deg) * frame.y_m_per_deg
    x1 = (column["target_lon"] - frame.lon0_deg) * frame.x_m_per_deg
    y1 = (column["target_lat"] - frame.lat0_deg) * frame.y_m_per_deg
    classes = column["road_class"]
    attraction = np.array([_ATTRACTION[RoadClass(one)] for one in classes]) * column["length_m"]
    middles = np.column_stack([(x0 + x1) / 2.0, (y0 + y1) / 2.0])
    radius_m = parameters.city_width_m / 2.0
    totals = np.cumsum(attraction * _density(middles, classes, seed, radius_m))
    draws = uniforms(seed, TABLE, "edge", ids) * totals[-1]
    edges = np.searchsorted(totals, draws, side="right")
    fronts = Fronts(x0[edges], y0[edges], x1[edges], y1[edges], column["length_m"][edges])
    return fronts.beside(ids, seed)


def _density(points: Floats, classes: npt.NDArray[np.object_], seed: int, radius_m: float) -> Floats:
    """Return the density of places at points: the centre, high streets, a little everywhere."""
    distances2 = (points * points).sum(axis=1)
    density: Floats = 0.012 + np.exp(-distances2 / (2.0 * (_CENTRE_SIGMA * radius_m) ** 2))
    is_busy = np.isin(classes, [RoadClass.SECONDARY.value, RoadClass.TERTIARY.value])
    candidates = points[is_busy & (distances2 < (0.9 * radius_m) ** 2)]
    chance = generator(seed, TABLE, "high_streets")
    chosen = chance.choice(len(candidates), min(_HIGH_STREET_COUNT, len(candidates)), replace=False)
    for centre in candidates[np.sort(chosen)]:
        offsets = points - centre
        size = chance.uniform(0.25, 0.8)
        squares = (offsets * offsets).sum(axis=1)
        density += size * np.exp(-squares / (2.0 * _HIGH_STREET_SIGMA_M**2))
    return density


def _names(ids: Longs, categories: Longs, seed: int) -> list[str]:
    first = (uniforms(seed, TABLE, "name", ids) * len(NAMES)).astype(int)
    second = uniforms(seed, TABLE, "noun", ids)
    nouns = [CATEGORIES[i].nouns for i in categories]
    return [
        f"{NAMES[i]} {choices[int(draw * len(choices))]}"
        for i, draw, choices in zip(first, second, nouns, strict=True)
    ]


def _keywords(ids: Longs, categories: Longs, seed: int) -> list[list[str]]:
    """Draw 3 to 6 different words per place, word of rank r with weight 1 / r.

    Sampling without replacement by exponential races: a word of weight w finishes after
    -log(u) / w, and the first ones win.
    """
    spread = KEYWORDS_MAX - KEYWORDS_MIN + 1
    counts = KEYWORDS_MIN + (uniforms(seed, TABLE, "keyword_count", ids) * spread).astype(int)
    most = max(len(category.words) for category in CATEGORIES)
    ranks = np.arange(most)
    draws = uniforms(seed, TABLE, "keyword", ids[:, np.newaxis], ranks)
    finish = -np.log1p(-draws) * (ranks + 1.0)
    found = []
    for row, category, count in zip(finish, categories, counts, strict=True):
        words = CATEGORIES[category].words
        winners = np.argsort(row[: len(words)], kind="stable")[:count]
        found.append(sorted(words[i] for i in winners))
    return found
