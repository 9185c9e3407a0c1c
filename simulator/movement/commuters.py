"""Commuters: home, work, errands, day by day.

On a weekday most devices go to work in the morning and leave it in the afternoon; some do an errand on
the way home. At the weekend all devices, and those without work on all days, go out once or twice about
noon. Times of the day are those of UTC: day and hour of tick 0 follow from `start_ms`. All devices are at
home at the midnight before.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simulator.chance import uniforms
from simulator.movement.destinations import home_nodes, next_nodes
from simulator.movement.model import Group
from simulator.movement.streets import Streets
from simulator.movement.trips import TABLE, paces
from simulator.parameters import SimulationParameters

DAY_S = 86_400.0
_HOUR_S = 3_600.0

WORKERS_SHARE = 0.75
ERRAND_SHARE = 0.4
"""The fraction that do an errand after work, or go out a second time on a day without work."""

STEPS = 3
"""Trips of a day: to work, to an errand, home. A device that skips a trip stays where it is."""

_WORK_HOURS = ((6.5, 9.5), (15.5, 18.5))
"""The hours of departure for work and from it."""
_ERRAND_HOURS = ((9.0, 14.0), (14.0, 18.0))
"""The hours of departure on other days: the first time and the second."""
_DWELL_S = (900.0, 5_400.0)
_STAY_S_MIN = 60.0

_WEEKEND = 5
"""Monday is 0."""
_EPOCH_WEEKDAY = 3

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


class CommuterModel:
    """Devices with homes and work."""

    def __init__(self, streets: Streets, parameters: SimulationParameters) -> None:
        self._graph = streets.graph
        self._destinations = streets.destinations
        self._parameters = parameters
        self._modes = np.array([one.mode for one in streets.classes], np.int32)
        start_s = parameters.start_ms / 1000.0
        self._midnight_s = -(start_s % DAY_S)
        self._first_day = int(start_s // DAY_S)

    def starts(self, numbers: Longs, classes: Ints) -> tuple[Ints, Floats]:
        """Start at home, at midnight. The first stay there ends when the first trip starts."""
        nodes = home_nodes(self._destinations, numbers, self._modes[classes], self._parameters.seed)
        return nodes, np.full(len(numbers), self._midnight_s)

    def destinations(self, group: Group) -> Ints:
        """Go to work, to an errand or home, or stay. The very first trip has no destination."""
        seed, modes = self._parameters.seed, self._modes[group.classes]
        days, steps = self._calendar(group.trips)
        homes = home_nodes(self._destinations, group.numbers, modes, seed)
        works = self._is_at_work(group.numbers, days)
        errands = self._near(group, modes, homes, group.trips)
        goes_again = uniforms(seed, TABLE, "errand", group.numbers, days) < ERRAND_SHARE
        first = np.where(works, self._near(group, modes, homes, np.full_like(group.trips, -1)), errands)
        second = np.where(goes_again, errands, group.nodes)
        found = np.select([steps == 0, steps == 1], [first, second], homes)
        return np.where(group.trips == 0, group.nodes, found).astype(np.int32)

    def leaves_s(self, group: Group) -> Floats:
        """Stay until the next trip is due."""
        seed, numbers = self._parameters.seed, group.numbers
        days, steps = self._calendar(group.trips + 1)
        works = self._is_at_work(numbers, days)
        draws = uniforms(seed, TABLE, "leaves", numbers, days, steps)

        def hours(of_work: tuple[float, float], of_others: tuple[float, float]) -> Floats:
            low = np.where(works, of_work[0], of_others[0])
            high = np.where(works, of_work[1], of_others[1])
            found: Floats = (low + (high - low) * draws) * _HOUR_S
            return found

        begin_s = self._midnight_s + days * DAY_S
        due_s = begin_s + np.where(
            steps == 0,
            hours(_WORK_HOURS[0], _ERRAND_HOURS[0]),
            hours(_WORK_HOURS[1], _ERRAND_HOURS[1]),
        )
        low_s, high_s = _DWELL_S
        dwells_s = low_s + (high_s - low_s) * draws
        # Straight home, if there was no errand.
        goes_again = uniforms(seed, TABLE, "errand", numbers, days) < ERRAND_SHARE
        back_s = group.clocks_s + np.where(goes_again, dwells_s, 0.0)
        least_s = group.clocks_s + _STAY_S_MIN
        found: Floats = np.where(steps == STEPS - 1, back_s, np.maximum(due_s, least_s))
        return found

    def paces(self, numbers: Longs) -> Floats:
        """Return a pace for each: some drive at the speed limit, others a little slower."""
        return paces(numbers, self._parameters.seed)

    def _calendar(self, trips: Longs) -> tuple[Longs, Longs]:
        """Return day and step of trips; the one before the first has no destination."""
        since = np.maximum(trips - 1, 0)
        return since // STEPS, since % STEPS

    def _is_at_work(self, numbers: Longs, days: Longs) -> npt.NDArray[np.bool_]:
        weekdays = (self._first_day + days + _EPOCH_WEEKDAY) % 7
        has_work = uniforms(self._parameters.seed, TABLE, "worker", numbers) < WORKERS_SHARE
        found: npt.NDArray[np.bool_] = has_work & (weekdays < _WEEKEND)
        return found

    def _near(self, group: Group, modes: Ints, homes: Ints, draws: Longs) -> Ints:
        """Return a destination for each that is not too far from its home."""
        return next_nodes(
            self._graph,
            self._destinations,
            group.numbers,
            modes,
            homes,
            draws,
            self._parameters.seed,
        )
