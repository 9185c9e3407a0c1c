"""What a simulation is made from, checked before any work begins."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path

from safe_region.scoring import SET_SIMILARITIES

DEVICES_MAX = 1_000_000
"""Device ids have six digits."""


class ParameterError(ValueError):
    """A parameter outside its limits; the message names it, its value and the limit."""


@dataclass(frozen=True, slots=True)
class SimulationParameters:
    """Everything that determines a simulation. Equal parameters and maps give equal rows.

    Parameters
    ----------
    map_file
        A map to drive in: an OpenStreetMap file or either file of a road network; None generates a city.
    unit_m
        Of a road network whose coordinates are no degrees: how many metres a unit has.
    places_file
        A CSV file of places for the map, in place of its own.
    texts_file
        A CSV file of texts with positions: what is published, in place of words of places.
    name
        Name for people; None takes that of the city or of the map.
    seed
        Another seed, another city and other devices.
    city_width_m
        How far the generated city reaches from one side to the other.
    places
        Points of interest of the generated city, or of a road network without any; other maps have their
        own.
    devices
        Devices that move.
    seconds, period_ms
        Length of the run and time between two positions of a device.
    start_ms
        Epoch milliseconds of tick 0.
    car_share, bicycle_share
        Shares of the devices; the rest walks.
    mobility
        Share of the devices that drive; the others stay where they begin.
    velocity
        How many times as fast as roads and classes allow they drive.
    stop_s_mean
        Mean time a device stays at a destination.
    objects
        Objects alive at the start.
    arrivals_per_s
        Rate of the Poisson process by which more are published.
    ttl_s_mean, ttl_s_min, ttl_s_max
        Lifetimes: exponential, then clamped. With the default rate and mean as many objects expire
        as are published.
    offer_share
        Share of the objects that carry one more word for their offer.
    retracted_share, replaced_share
        Shares of the objects that are taken back, or replaced under the same key, while they live.
    subscriptions_per_device
        Subscriptions of each device.
    boolean_share
        Share of the subscriptions that are boolean; the others are top-k.
    window_share
        Share of the subscriptions for which only the latest objects count.
    standing_share
        Share of the top-k subscriptions that stand at a place; the others move with their devices.
    subscription_keywords_max, k_max
        Upper bounds; the numbers are uniform from 1.
    alpha_min, alpha_max
        Preferences are uniform in (0, 1), then clamped to these.
    similarity
        Text similarity of top-k subscriptions: jaccard, dice or cosine.
    tfidf_share
        Share of the top-k subscriptions that compare texts by tf-idf instead.
    range_area_min, range_area_max
        Ranges of boolean subscriptions, as shares of the service area: uniform between them.

    Raises
    ------
    ParameterError
        If one is outside its limits.
    """

    map_file: Path | None = None
    unit_m: float | None = None
    places_file: Path | None = None
    texts_file: Path | None = None
    name: str | None = None
    seed: int = 1
    city_width_m: float = 12_000.0
    places: int = 2_500
    devices: int = 500
    seconds: int = 600
    period_ms: int = 1_000
    start_ms: int = 1_767_225_600_000
    car_share: float = 0.6
    bicycle_share: float = 0.2
    mobility: float = 1.0
    velocity: float = 1.0
    stop_s_mean: float = 45.0
    objects: int = 3_000
    arrivals_per_s: float = 2.0
    ttl_s_mean: float = 1_500.0
    ttl_s_min: float = 30.0
    ttl_s_max: float = 14_400.0
    offer_share: float = 0.5
    retracted_share: float = 0.05
    replaced_share: float = 0.05
    subscriptions_per_device: int = 1
    boolean_share: float = 0.4
    window_share: float = 0.3
    standing_share: float = 0.2
    subscription_keywords_max: int = 5
    k_max: int = 10
    alpha_min: float = 0.05
    alpha_max: float = 0.95
    similarity: str = "jaccard"
    tfidf_share: float = 0.2
    range_area_min: float = 0.0001
    range_area_max: float = 0.01

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and low <= value <= high):
                raise ParameterError(f"{name} is {value}, must be within {low}..{high}")
        for name in ("unit_m", "places_file"):
            if self.map_file is None and getattr(self, name) is not None:
                raise ParameterError(f"{name} is {getattr(self, name)}, must go with a map_file")
        _check_not_above(self, "ttl_s_min", "ttl_s_max")
        _check_not_above(self, "alpha_min", "alpha_max")
        _check_not_above(self, "range_area_min", "range_area_max")
        _check_shares(self, "car_share", "bicycle_share")
        _check_shares(self, "retracted_share", "replaced_share")
        if self.run_ms % self.period_ms:
            raise ParameterError(
                f"period_ms is {self.period_ms}, must divide the run of {self.run_ms} ms"
            )
        known = [one.name.lower() for one in SET_SIMILARITIES]
        if self.similarity not in known:
            raise ParameterError(f"similarity is {self.similarity!r}, must be one of {', '.join(known)}")
        if self.name is not None and not self.name.strip():
            raise ParameterError("name is empty, must be some text")

    @property
    def run_ms(self) -> int:
        """Length of the run."""
        return self.seconds * 1000

    @property
    def tick_count(self) -> int:
        """How many positions each device has: one per period, both ends included."""
        return self.run_ms // self.period_ms + 1

    def as_dict(self) -> dict[str, object]:
        """Return the parameters by name, ready for JSON; of paths only the file's name."""
        return {
            name: value.name if isinstance(value, Path) else value
            for name, value in dataclasses.asdict(self).items()
        }


_LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "unit_m": (1e-6, 1e6),
    "city_width_m": (3_000, 40_000),
    "places": (1, 1_000_000),
    "devices": (1, DEVICES_MAX),
    "seconds": (1, 86_400),
    "period_ms": (100, 60_000),
    "start_ms": (0, 2**53),
    "car_share": (0, 1),
    "bicycle_share": (0, 1),
    "stop_s_mean": (1, 3_600),
    "objects": (1, 10_000_000),
    "arrivals_per_s": (0, 100_000),
    "ttl_s_mean": (1, 31_536_000),
    "ttl_s_min": (1, 31_536_000),
    "ttl_s_max": (1, 31_536_000),
    "offer_share": (0, 1),
    "retracted_share": (0, 1),
    "replaced_share": (0, 1),
    "subscriptions_per_device": (1, 100),
    "boolean_share": (0, 1),
    "window_share": (0, 1),
    "standing_share": (0, 1),
    "tfidf_share": (0, 1),
    "mobility": (0, 1),
    "velocity": (0.01, 100),
    "subscription_keywords_max": (1, 16),
    "k_max": (1, 100),
    "alpha_min": (0.001, 0.999),
    "alpha_max": (0.001, 0.999),
    "range_area_min": (1e-9, 1),
    "range_area_max": (1e-9, 1),
}


def _check_not_above(parameters: SimulationParameters, low: str, high: str) -> None:
    lower = getattr(parameters, low)
    upper = getattr(parameters, high)
    if lower > upper:
        raise ParameterError(f"{low} is {lower}, must be at most {high}, which is {upper}")


def _check_shares(parameters: SimulationParameters, first: str, second: str) -> None:
    total = getattr(parameters, first) + getattr(parameters, second)
    if total > 1.0:
        raise ParameterError(f"{first} + {second} is {total}, must be at most 1")
