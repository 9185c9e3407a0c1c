"""The workload of `bench silence`: devices on trajectories, objects that come and go."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bench.datasets import Dataset, Subscriptions, distinct_subscriptions
from bench.portions import interest_part, object_part
from bench.trajectories import Trajectories
from index.batches import Floats, Ints, ObjectBatch
from safe_region.scoring import Similarity

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class SilenceParameters:
    """Size and shape of a run.

    Parameters
    ----------
    devices
        Each has one subscription.
    objects
        How many there are at the beginning.
    seconds
        How long devices move; each looks at its region once a second.
    arrivals_per_s, expiries_per_s
        Objects that come and that go.
    k_max
        k is uniform from 1 to this.
    similarity
        Text similarity of all.
    audited
        Devices compared with the oracle at each of `audits` moments.
    """

    devices: int = 2_000
    objects: int = 100_000
    seconds: int = 600
    arrivals_per_s: float = 0.0
    expiries_per_s: float = 0.0
    k_max: int = 10
    similarity: Similarity = Similarity.JACCARD
    audited: int = 40
    audits: int = 5
    seed: int = 1


@dataclass(frozen=True, slots=True)
class SilenceWorkload:
    """What happens, the same for all variants.

    Parameters
    ----------
    data
        Where it was drawn from.
    drawn
        Subscriptions, and where their devices begin.
    trajectories
        Where devices are.
    objects
        Those of the beginning, then those that arrive, in order.
    expiry_ms
        When each of them goes.
    arrived
        How many of them there have been by each second; at second 0 those of the beginning.
    """

    data: Dataset
    drawn: Subscriptions
    trajectories: Trajectories
    objects: ObjectBatch
    expiry_ms: Ints
    arrived: Ints

    def arriving(self, second: int) -> tuple[ObjectBatch, Ints]:
        """Return the objects that arrive at a second (at 0 all that are there), and their expiries."""
        start = int(self.arrived[second - 1]) if second else 0
        stop = int(self.arrived[second])
        return object_part(self.objects, start, stop), self.expiry_ms[start:stop]

    def first(self, devices: int) -> SilenceWorkload:
        """Return the same with the first devices only."""
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
        data, parameters.devices, parameters.k_max, parameters.similarity, chance
    )
    trajectories = Trajectories(offsets_m, drawn.x_m, drawn.y_m, chance)
    seconds = np.arange(parameters.seconds + 1)
    arrived = parameters.objects + np.floor(parameters.arrivals_per_s * seconds).astype(np.int64)
    objects = data.objects(int(arrived[-1]), 1, chance)
    expired = np.floor(parameters.expiries_per_s * seconds).astype(np.int64)
    expiry_ms = _expiries(arrived, np.diff(expired), chance)
    return SilenceWorkload(data, drawn, trajectories, objects, expiry_ms, arrived)


def _expiries(arrived: Ints, expiring: Ints, chance: np.random.Generator) -> Ints:
    """Choose who goes at each second, among those who are there."""
    expiry_ms = np.full(int(arrived[-1]), FOREVER, dtype=np.int64)
    alive = np.arange(arrived[0])
    for second, count in enumerate(expiring.tolist(), 1):
        chosen = chance.choice(len(alive), min(count, len(alive)), replace=False)
        expiry_ms[alive[chosen]] = 1000 * second
        alive = np.concatenate(
            [np.delete(alive, chosen), np.arange(arrived[second - 1], arrived[second])]
        )
    return expiry_ms
