"""Data sets of benchmarks: places with keywords, on a plane.

`places` and `osm` read files that are not part of the project (`NEARCAST_DATA` names their folder, by
default `../shared/data`); `synthetic` needs none. If more objects are required than a file has, they are
drawn from it: the position of one place, moved by a random step, with the keywords of another. So density
varies as in the file and keywords are as frequent, and no object is repeated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.errors import BenchError
from bench.parts import keyword_rows
from index.batches import Floats, InterestBatch, Ints, KeywordLists, ObjectBatch
from index.square import Square
from nearcast.limits import DEFAULT_LIMITS
from safe_region.earth.frame import Area, Frame
from safe_region.scoring.formulas import Similarity, text_weight

KEYWORDS_MAX = DEFAULT_LIMITS.object_keywords_max
SUBSCRIPTION_KEYWORDS_MAX = 5
ALPHA_MIN, ALPHA_MAX = DEFAULT_LIMITS.alpha_min, DEFAULT_LIMITS.alpha_max
_STEP_M = 2_000.0
"""Standard deviation of the step away from a place that was drawn before."""
_START_M = 500.0
"""Standard deviation of the distance from a place to a device's first position."""
_LOWER_48 = Area(-125.0, 24.0, -87.0, 50.0)
"""Part of the United States that the file of places covers, without Alaska."""
_AMERICAS = Area(-170.0, -56.0, -30.0, 75.0)
_CITY_M = 30_000.0
_CLUSTERS = 60
_VOCABULARY = 50_000
_ZIPF = 1.0
_KEYWORDS_MEAN = 5.0


@dataclass(frozen=True, slots=True)
class Dataset:
    """Places with keywords.

    Parameters
    ----------
    name
        Name of the source.
    x_m, y_m
        Plane positions.
    keywords
        Keyword ids of each place.
    maxdist_m
        Diagonal of the area.
    """

    name: str
    x_m: Floats
    y_m: Floats
    keywords: KeywordLists
    maxdist_m: float

    def __len__(self) -> int:
        return len(self.x_m)

    def square(self) -> Square:
        """Return a square around all places: its centre and half a side."""
        low_x, high_x = float(self.x_m.min()), float(self.x_m.max())
        low_y, high_y = float(self.y_m.min()), float(self.y_m.max())
        half = max(high_x - low_x, high_y - low_y) / 2.0 + 1.0
        return Square((low_x + high_x) / 2.0, (low_y + high_y) / 2.0, half)

    def objects(self, count: int, first_id: int, chance: np.random.Generator) -> ObjectBatch:
        """Draw objects: places in random order, then mixtures of two (see above)."""
        rows = chance.permutation(len(self))[:count]
        texts = rows
        if count > len(self):
            more = chance.integers(0, len(self), (2, count - len(self)))
            rows, texts = np.concatenate([rows, more[0]]), np.concatenate([rows, more[1]])
        steps = chance.normal(0.0, _STEP_M, (2, count))
        steps[:, : len(self)] = 0.0
        return ObjectBatch(
            np.arange(first_id, first_id + count, dtype=np.int64),
            self.x_m[rows] + steps[0],
            self.y_m[rows] + steps[1],
            keyword_rows(self.keywords, texts),
        )


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Subscriptions drawn as in lamps.txt section 7.1, and the first positions of their devices."""

    handles: Ints
    interests: InterestBatch
    alpha: Floats
    k: Ints
    x_m: Floats
    y_m: Floats


def subscriptions(
    data: Dataset,
    count: int,
    k_max: int,
    similarity: Similarity,
    chance: np.random.Generator,
    alpha: float | None = None,
) -> Subscriptions:
    """Draw subscriptions: 1 to 5 keywords of a random place, alpha uniform in (0, 1), k from 1 to k_max.

    Devices start at random places, which need not be those of the keywords.

    Parameters
    ----------
    data
        The places with their keywords.
    count
        The number of subscriptions.
    k_max
        The largest k.
    similarity
        The text similarity of all.
    chance
        The random generator.
    alpha
        The same for all, if given.
    """
    rows = chance.integers(0, len(data), count)
    sizes = np.diff(data.keywords.offsets)[rows]
    wanted = chance.integers(1, SUBSCRIPTION_KEYWORDS_MAX + 1, count)
    alphas = chance.uniform(0.0, 1.0, count) if alpha is None else np.full(count, alpha)
    alphas = np.clip(alphas, ALPHA_MIN, ALPHA_MAX)
    start = chance.integers(0, len(data), count)
    steps = chance.normal(0.0, _START_M, (2, count))
    return Subscriptions(
        np.arange(1, count + 1, dtype=np.int64),
        InterestBatch(
            text_weight_all(alphas, data.maxdist_m),
            np.full(count, similarity, dtype=np.int8),
            sample_keywords(keyword_rows(data.keywords, rows), np.minimum(wanted, sizes), chance),
        ),
        alphas,
        chance.integers(1, k_max + 1, count),
        data.x_m[start] + steps[0],
        data.y_m[start] + steps[1],
    )


def distinct_subscriptions(
    data: Dataset, count: int, k_max: int, similarity: Similarity, chance: np.random.Generator
) -> Subscriptions:
    """Draw until no two have the same keywords, alpha, k and position."""
    drawn = subscriptions(data, count, k_max, similarity, chance)
    while len(repeated := repeated_rows(drawn)):
        again = subscriptions(data, len(repeated), k_max, similarity, chance)
        drawn = replaced(drawn, repeated, again)
    return drawn


def repeated_rows(drawn: Subscriptions) -> Ints:
    """Return the rows that equal an earlier one."""
    if len(np.unique(drawn.x_m)) == len(drawn.x_m):
        return np.empty(0, dtype=np.int64)
    columns = (drawn.x_m.tolist(), drawn.y_m.tolist(), drawn.alpha.tolist(), drawn.k.tolist())
    words = (row.tobytes() for row in keyword_sets(drawn.interests.keywords))
    seen: set[tuple[object, ...]] = set()
    found = []
    for row, key in enumerate(zip(*columns, words, strict=True)):
        if key in seen:
            found.append(row)
        seen.add(key)
    return np.array(found, dtype=np.int64)


def replaced(drawn: Subscriptions, rows: Ints, others: Subscriptions) -> Subscriptions:
    """Replace some rows by others."""
    source = np.arange(len(drawn.handles))
    source[rows] = len(source) + np.arange(len(rows))
    first, second = drawn.interests, others.interests
    words = [*keyword_sets(first.keywords), *keyword_sets(second.keywords)]

    def taken(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([one, other])[source]

    return Subscriptions(
        drawn.handles,
        InterestBatch(
            taken(first.weight_m, second.weight_m),
            taken(first.similarity, second.similarity),
            KeywordLists.of([words[row] for row in source.tolist()]),
        ),
        taken(drawn.alpha, others.alpha),
        taken(drawn.k, others.k),
        taken(drawn.x_m, others.x_m),
        taken(drawn.y_m, others.y_m),
    )


def text_weight_all(alphas: Floats, maxdist_m: float) -> Floats:
    """Return `text_weight` of an array."""
    return np.array([text_weight(alpha, maxdist_m) for alpha in alphas.tolist()])


def sample_keywords(lists: KeywordLists, counts: Ints, chance: np.random.Generator) -> KeywordLists:
    """Keep random keywords of each row; `counts` has their numbers."""
    sizes = np.diff(lists.offsets)
    owners = np.repeat(np.arange(len(lists)), sizes)
    order = np.lexsort((chance.random(len(lists.ids)), owners))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(lists.offsets[:-1], sizes)
    kept = rank < np.repeat(counts, sizes)
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return KeywordLists(offsets, lists.ids[kept])


# -- sources -------------------------------------------------------------------------------------


def data_folder() -> Path:
    """Return the folder of data files."""
    return Path(os.environ.get("NEARCAST_DATA", "../shared/data"))


def required_file(name: str) -> Path:
    """Return the path of a file of data.

    Raises
    ------
    BenchError
        If the file does not exist.
    """
    path = data_folder() / name
    if not path.is_file():
        raise BenchError(
            f"{path} does not exist: set NEARCAST_DATA to the folder with {name}, or use the data set "
            "synthetic"
        )
    return path


def places() -> Dataset:
    """Read businesses of the United States (2010).

    The words of the name are the keywords: 3.1 on average, where the paper's PLACES have 2.9.
    """
    return _from_csv("places", required_file("text/places_simplegeo_us.csv.gz"), _LOWER_48, "name")


def osm() -> Dataset:
    """Read named points of interest of Malta from OpenStreetMap: city density."""
    return _from_csv(
        "osm", required_file("text/pois_malta.csv.gz"), Area(14.15, 35.75, 14.65, 36.12), "text"
    )


def texts() -> Dataset:
    """Read the same businesses with all their words: name, category, tags. 8.6 on average."""
    return _from_csv("texts", required_file("text/places_simplegeo_us.csv.gz"), _LOWER_48, "text")


def geonames() -> Dataset:
    """Read towns of the Americas, with the words of their names and regions: 5.2 on average."""
    return _from_csv("geonames", required_file("text/geonames_cities1000.csv.gz"), _AMERICAS, "text")


def _from_csv(name: str, path: Path, area: Area, column: str) -> Dataset:
    import pandas as pd  # noqa: PLC0415 - an extra

    table = pd.read_csv(path, usecols=["lon", "lat", column])
    inside = table["lon"].between(area.lon_min, area.lon_max)
    inside &= table["lat"].between(area.lat_min, area.lat_max)
    table = table[inside]
    frame = Frame.of(area)
    words = [sorted(set(re.findall(r"\w+", str(text).lower())))[:KEYWORDS_MAX] for text in table[column]]
    kept = [i for i, row in enumerate(words) if row]
    x_m = (table["lon"].to_numpy()[kept] - frame.lon0_deg) * frame.x_m_per_deg
    y_m = (table["lat"].to_numpy()[kept] - frame.lat0_deg) * frame.y_m_per_deg
    return Dataset(name, x_m, y_m, _numbered([words[i] for i in kept]), frame.maxdist_m)


def _numbered(rows: Sequence[Sequence[str]]) -> KeywordLists:
    numbers: dict[str, int] = {}
    return KeywordLists.of(
        [sorted(numbers.setdefault(word, len(numbers)) for word in row) for row in rows]
    )


def synthetic(count: int = 100_000) -> Dataset:
    """Draw a city: places in clusters of normal spread, keywords by Zipf's law."""
    return _city("synthetic", count, 1, lambda chance: 1 + chance.poisson(_KEYWORDS_MEAN - 1.0, count))


def messages(count: int = 100_000) -> Dataset:
    """Draw a city whose objects have 5 to 13 keywords."""
    return _city("messages", count, 2, lambda chance: chance.integers(5, 14, count))


def uniform(count: int = 100_000) -> Dataset:
    """Draw a city whose objects have 5 to 13 keywords, all equally frequent."""
    return _city("uniform", count, 2, lambda chance: chance.integers(5, 14, count), zipf=0.0)


def _city(
    name: str,
    count: int,
    seed: int,
    sizes_of: Callable[[np.random.Generator], Ints],
    zipf: float = _ZIPF,
) -> Dataset:
    """Draw places with a drawn number of keywords each, or fewer if some are drawn twice."""
    chance = np.random.default_rng([seed, count])
    centres = chance.uniform(-_CITY_M / 2, _CITY_M / 2, (_CLUSTERS, 2))
    spread = chance.uniform(0.01, 0.06, _CLUSTERS) * _CITY_M
    cluster = chance.integers(0, _CLUSTERS, count)
    points = centres[cluster] + chance.normal(0.0, 1.0, (count, 2)) * spread[cluster, None]
    points = (points + _CITY_M / 2) % _CITY_M - _CITY_M / 2  # points that leave enter on the other side
    sizes = sizes_of(chance)
    weights = 1.0 / np.arange(1, _VOCABULARY + 1) ** zipf
    drawn = np.searchsorted(np.cumsum(weights) / weights.sum(), chance.random(int(sizes.sum())))
    cuts = np.cumsum(sizes)[:-1]
    rows = [np.unique(row) for row in np.split(np.minimum(drawn, _VOCABULARY - 1), cuts)]
    return Dataset(
        name, points[:, 0], points[:, 1], KeywordLists.of(rows), float(np.hypot(_CITY_M, _CITY_M))
    )


SOURCES: dict[str, Callable[[], Dataset]] = {
    "places": places,
    "texts": texts,
    "geonames": geonames,
    "osm": osm,
    "synthetic": synthetic,
    "messages": messages,
    "uniform": uniform,
}


@lru_cache(maxsize=2)
def source(name: str) -> Dataset:
    """Return a data set by name; the last two are cached.

    Raises
    ------
    BenchError
        If a file does not exist.
    """
    return SOURCES[name]()


def keyword_sets(lists: KeywordLists) -> list[npt.NDArray[np.int32]]:
    """Return the rows one by one."""
    return np.split(lists.ids, lists.offsets[1:-1]) if len(lists) else []
