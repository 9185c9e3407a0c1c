"""Draw the workload of the suite silence: devices on trajectories, and changing objects."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bench.datasets import Dataset, Subscriptions, distinct_subscriptions
from bench.parts import interest_part, object_part
from bench.silence.experiments import SilenceParameters
from bench.trajectories import Trajectories
from index.batches import Floats, Ints, ObjectBatch

FOREVER = 2**62
_MS = 1000


@dataclass(frozen=True, slots=True)
class SilenceWorkload:
    """The workload of all variants.

    Parameters
    ----------
    data
        The data set.
    drawn
        Subscriptions, and the first positions of their devices.
    trajectories
        Positions of devices.
    objects
        The initial objects, then those published later, in order.
    created_ms, expiry_ms
        Creation and expiry time of each object.
    arrived
        Number of objects published until each second; at second 0 the initial ones.
    """

    data: Dataset
    drawn: Subscriptions
    trajectories: Trajectories
    objects: ObjectBatch
    created_ms: Ints
    expiry_ms: Ints
    arrived: Ints

    def part(self, second: int) -> slice:
        """Return the slice of the objects published at a second; at 0, the initial ones."""
        return slice(int(self.arrived[second - 1]) if second else 0, int(self.arrived[second]))

    def arriving(self, second: int) -> tuple[ObjectBatch, Ints]:
        """Return the objects published at a second (at 0 the initial ones), and their expiries."""
        part = self.part(second)
        return object_part(self.objects, part.start, part.stop), self.expiry_ms[part]

    def ending(self, second: int) -> Ints:
        """Return the ids of the objects that end at a second, if all have the same lifetime."""
        ends = np.searchsorted(self.expiry_ms, [_MS * (second - 1), _MS * second], side="right")
        return np.arange(ends[0], ends[1]) + 1

    def crowded_out(self, second: int, count: int) -> Ints:
        """Return the ids of the objects that leave a window of `count` objects at a second."""
        part = self.part(second)
        return np.arange(max(0, part.start - count), max(0, part.stop - count)) + 1

    def first(self, devices: int) -> SilenceWorkload:
        """Return the same workload with the first devices only."""
        whole = self.drawn
        drawn = Subscriptions(
            whole.handles[:devices],
            interest_part(whole.interests, 0, devices),
            whole.alpha[:devices],
            whole.k[:devices],
            whole.x_m[:devices],
            whole.y_m[:devices],
        )
        return replace(self, drawn=drawn, trajectories=self.trajectories.first(devices))


def prepare(data: Dataset, offsets_m: Floats, parameters: SilenceParameters) -> SilenceWorkload:
    """Draw a workload."""
    chance = np.random.default_rng([parameters.seed, 29])
    drawn = distinct_subscriptions(
        data, parameters.devices, parameters.k_max, parameters.text_similarity, chance
    )
    trajectories = Trajectories(offsets_m, drawn.x_m, drawn.y_m, chance)
    seconds = np.arange(parameters.seconds + 1)
    if parameters.window_s:
        return _windowed(data, drawn, trajectories, parameters, chance)
    arrived = parameters.objects + np.floor(parameters.arrivals_per_s * seconds).astype(np.int64)
    objects = data.objects(int(arrived[-1]), 1, chance)
    expired = np.floor(parameters.expiries_per_s * seconds).astype(np.int64)
    expiry_ms = _expiries(arrived, np.diff(expired), chance)
    created_ms = _MS * np.repeat(seconds, np.diff(arrived, prepend=0))
    return SilenceWorkload(data, drawn, trajectories, objects, created_ms, expiry_ms, arrived)


def _windowed(
    data: Dataset,
    drawn: Subscriptions,
    trajectories: Trajectories,
    parameters: SilenceParameters,
    chance: np.random.Generator,
) -> SilenceWorkload:
    """Draw objects that arrive by Poisson's law, at whole seconds, and have the same lifetime."""
    first = -int(np.ceil(parameters.window_s)) + 1
    per_s = parameters.objects / (1 - first)
    arrivals = chance.poisson(per_s, parameters.seconds + 1 - first)
    created_ms = _MS * np.repeat(np.arange(first, parameters.seconds + 1), arrivals)
    arrived = np.cumsum(arrivals)[-first:]
    objects = data.objects(len(created_ms), 1, chance)
    expiry_ms = created_ms + _MS * (1 - first)
    return SilenceWorkload(data, drawn, trajectories, objects, created_ms, expiry_ms, arrived)


def _expiries(arrived: Ints, expiring: Ints, chance: np.random.Generator) -> Ints:
    """Choose the objects that end at each second among those alive."""
    expiry_ms = np.full(int(arrived[-1]), FOREVER, dtype=np.int64)
    alive = np.arange(arrived[0])
    for second, count in enumerate(expiring.tolist(), 1):
        chosen = chance.choice(len(alive), min(count, len(alive)), replace=False)
        expiry_ms[alive[chosen]] = _MS * second
        alive = np.concatenate(
            [np.delete(alive, chosen), np.arange(arrived[second - 1], arrived[second])]
        )
    return expiry_ms
