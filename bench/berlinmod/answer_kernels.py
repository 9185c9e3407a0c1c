"""Select the answers of a query among the pairs (event, range) that match.

Pairs of one vehicle and one range must come in the order of its events; those of others may lie between
them. A pair has one place in an array of vehicles times ranges: O(1) a pair.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.batches import Ints
from safe_region.jit import kernel

Steps = npt.NDArray[np.int32]

NEVER = -2
"""Stored in place of the last event at which a vehicle was in a range, if there is none."""


@kernel
def entries(number: Ints, vehicle: Ints, range_numbers: Ints, latest: Steps, places: Ints) -> int:
    """Find the pairs in which a vehicle is in a range and was not at its previous event.

    Parameters
    ----------
    number, vehicle, range_numbers
        For each pair: the event's number among those of its vehicle, the vehicle, the range.
    latest
        Shape (vehicles, ranges): the event at which a vehicle was last inside; NEVER at first.
    places
        As long as the pairs; the places of the answers among the pairs are written here.

    Returns
    -------
    int
        The number of answers.
    """
    count = 0
    for i in range(number.shape[0]):
        if latest[vehicle[i], range_numbers[i]] != number[i] - 1:
            places[count] = i
            count += 1
        latest[vehicle[i], range_numbers[i]] = number[i]
    return count


@kernel
def first_passages(number: Ints, vehicle: Ints, range_numbers: Ints, latest: Steps, places: Ints) -> int:
    """Find the pairs in which a vehicle is in a range for the first time; see `entries`."""
    count = 0
    for i in range(number.shape[0]):
        if latest[vehicle[i], range_numbers[i]] == NEVER:
            latest[vehicle[i], range_numbers[i]] = number[i]
            places[count] = i
            count += 1
    return count
