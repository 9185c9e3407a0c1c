"""Dividing a sequence of units into parts: Algorithms 2 (optimal) and 3 (heuristic) of the paper.

Units are keywords in their order, or places between the edges of clauses along an axis.
"""

from __future__ import annotations

import numpy as np

from index.batches import Floats
from index.published.ap_tree.layout import Numbers, Units
from safe_region.jit import leaf


@leaf
def part_cost(units: Units, begin: int, end: int) -> float:
    """Return weight times hit probability of the part between two boundaries (Equations 1 and 3)."""
    return float((units.low[end] - units.high[begin]) * min(1.0, units.hit[end] - units.hit[begin]))


@leaf
def total_cost(units: Units, bounds: Numbers, count: int) -> float:
    """Return the cost of a partition (Equation 1)."""
    cost = 0.0
    for i in range(count):
        cost += part_cost(units, bounds[i], bounds[i + 1])
    return cost


@leaf
def cut_evenly(units: Units, unit_count: int, count: int, bounds: Numbers) -> None:
    """Cut into parts of about the same weight, by the centres of clauses that cover several units."""
    whole = units.low[unit_count] + units.high[unit_count]
    bounds[0] = 0
    place = 0
    for i in range(1, count):
        place += 1
        goal = whole * i / count
        last = unit_count - (count - i)
        while place < last and units.low[place] + units.high[place] < goal:
            place += 1
        bounds[i] = place
    bounds[count] = unit_count


@leaf
def cut_heuristically(units: Units, unit_count: int, count: int, bounds: Numbers) -> None:
    """Cut evenly, then move each boundary to the least cost of its two parts. O(units)."""
    cut_evenly(units, unit_count, count, bounds)
    for i in range(1, count):
        left, right = int(bounds[i - 1]), int(bounds[i + 1])
        best = bounds[i]
        least = part_cost(units, left, best) + part_cost(units, best, right)
        for place in range(left + 1, right):
            cost = part_cost(units, left, place) + part_cost(units, place, right)
            if cost < least:
                least = cost
                best = place
        bounds[i] = best


@leaf
def add_layer(units: Units, unit_count: int, layer: int, costs: Floats, choices: Numbers) -> None:
    """Find the least costs of the first units in `layer` parts from those in one less. O(units^2).

    `costs` has two rows, for odd and even layers; `choices[layer, k]` is the start of the last part.
    """
    if layer == 1:
        for end in range(1, unit_count + 1):
            costs[1, end] = part_cost(units, 0, end)
            choices[1, end] = 0
        return
    before, after = costs[(layer - 1) % 2], costs[layer % 2]
    for end in range(layer, unit_count + 1):
        least = np.inf
        best = layer - 1
        for begin in range(layer - 1, end):
            cost = before[begin] + part_cost(units, begin, end)
            if cost < least:
                least = cost
                best = begin
        after[end] = least
        choices[layer, end] = best


@leaf
def read_choices(unit_count: int, count: int, choices: Numbers, bounds: Numbers) -> None:
    """Write the boundaries that the layers have chosen."""
    bounds[count] = unit_count
    for layer in range(count, 0, -1):
        bounds[layer - 1] = choices[layer, bounds[layer]]
