"""A recorded run of any size: a grid of streets, devices that walk straight on, objects."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.map.population import AREA
from simulator.recorded_map.columns import encoded, fixed

_STREETS = 80
"""In each direction."""
_STEPS = 121
_LIFE_MS = 600_000


def recorded(device_count: int, object_count: int) -> bytes:
    """Return the file of a run."""
    rng = np.random.default_rng(1)
    header = {
        "name": "Grid",
        "area": list(AREA),
        "plane": {},
        "start_ms": 1_767_225_600_000,
        "period_ms": 1000,
        "step_ms": 1000,
        "steps": _STEPS,
        "device_ids": [f"walker-{number}" for number in range(device_count)],
        "road_classes": ["primary", "residential"],
        "keywords": [],
        "logged": list(range(device_count)),
        "specs": {},
        "object_keys": {},
        "water": [],
    }
    starts = _places(rng, device_count)
    ways = rng.uniform(-1e-4, 1e-4, (device_count, 2))
    tracks = starts + np.arange(_STEPS)[:, None, None] * ways
    places = _places(rng, object_count)
    columns = {
        **_streets(),
        "track_lon": fixed(tracks[..., 0].ravel()),
        "track_lat": fixed(tracks[..., 1].ravel()),
        "object_ms": np.zeros(object_count, np.uint32),
        "object_end_ms": rng.integers(_LIFE_MS // 2, _LIFE_MS, object_count).astype(np.uint32),
        "object_lon": fixed(places[:, 0]),
        "object_lat": fixed(places[:, 1]),
        **dict.fromkeys(("keyword_object", "keyword_number", "holding_ms"), np.zeros(0, np.uint32)),
        "moves": np.arange(_STEPS, dtype=np.uint32) * device_count,
        "report_ms": np.zeros(device_count, np.uint32),
        "report_device": np.arange(device_count, dtype=np.uint32),
        "report_lon": fixed(starts[:, 0]),
        "report_lat": fixed(starts[:, 1]),
    }
    return encoded(header, columns)


def _places(rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    west, south, east, north = AREA
    return np.column_stack([rng.uniform(west, east, count), rng.uniform(south, north, count)])


def _streets() -> dict[str, npt.NDArray[np.int32] | npt.NDArray[np.uint8]]:
    """Return the streets of a grid, in parts between two crossings; every tenth is a large one."""
    west, south, east, north = AREA
    lons, lats = np.linspace(west, east, _STREETS + 1), np.linspace(south, north, _STREETS + 1)
    number, part = (one.ravel() for one in np.meshgrid(np.arange(_STREETS + 1), np.arange(_STREETS)))
    ends = [
        np.concatenate([lons[part], lons[number]]),
        np.concatenate([lats[number], lats[part]]),
        np.concatenate([lons[part + 1], lons[number]]),
        np.concatenate([lats[number], lats[part + 1]]),
    ]
    names = ("road_lon1", "road_lat1", "road_lon2", "road_lat2")
    classes = np.where(number % 10 == 0, 0, 1).astype(np.uint8)
    return {
        **{name: fixed(column) for name, column in zip(names, ends, strict=True)},
        "road_class": np.concatenate([classes, classes]),
    }
