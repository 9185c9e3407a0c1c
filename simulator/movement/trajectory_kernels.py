"""Kernel of the trajectories: positions at a fixed period along itineraries of timed legs.

Time is continuous within an itinerary, so the remaining part of an edge at one tick is driven before the
next; no rounding accumulates.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@kernel
def sample(
    offsets: Longs,
    ends_s: Floats,
    starts_s: Floats,
    period_s: float,
    firsts: Longs,
    row_offsets: Longs,
) -> tuple[Longs, Floats, Floats]:
    """Find the leg of each device at each of its ticks, and the progress along it. O(legs + ticks).

    Parameters
    ----------
    offsets
        Legs of device d are offsets[d]..offsets[d + 1], at least one.
    ends_s
        When each leg ends, ascending within a device.
    starts_s
        When the first leg of each device starts.
    period_s, firsts, row_offsets
        Rows of device d are row_offsets[d]..row_offsets[d + 1], one a tick from firsts[d] on.

    Returns
    -------
    For each row the leg, the fraction of its time that has passed, in [0, 1], and its duration.
    """
    legs = np.empty(row_offsets[-1], np.int64)
    shares = np.empty(row_offsets[-1])
    durations_s = np.empty(row_offsets[-1])
    for device in range(offsets.shape[0] - 1):
        leg = offsets[device]
        last = offsets[device + 1] - 1
        begin_s = starts_s[device]
        tick = firsts[device]
        for row in range(row_offsets[device], row_offsets[device + 1]):
            now_s = tick * period_s
            tick += 1
            while leg < last and ends_s[leg] <= now_s:
                begin_s = ends_s[leg]
                leg += 1
            duration_s = ends_s[leg] - begin_s
            share = (now_s - begin_s) / duration_s if duration_s > 0.0 else 1.0
            legs[row] = leg
            shares[row] = min(1.0, share)
            durations_s[row] = duration_s
    return legs, shares, durations_s


@kernel
def positions(
    legs: Longs,
    shares: Floats,
    durations_s: Floats,
    leg_edges: Ints,
    is_moving: npt.NDArray[np.bool_],
    sources: Ints,
    targets: Ints,
    lengths_m: Floats,
    lons: Floats,
    lats: Floats,
) -> tuple[Ints, Floats, Floats, Floats]:
    """Return edge, longitude, latitude and speed of each row of `sample`. O(rows)."""
    count = legs.shape[0]
    edges = np.empty(count, np.int32)
    row_lons, row_lats, speeds_mps = np.empty(count), np.empty(count), np.empty(count)
    for row in range(count):
        edge = leg_edges[legs[row]]
        moves = is_moving[legs[row]]
        share = shares[row] if moves else 1.0
        start, end = sources[edge], targets[edge]
        edges[row] = edge
        row_lons[row] = lons[start] + share * (lons[end] - lons[start])
        row_lats[row] = lats[start] + share * (lats[end] - lats[start])
        speeds_mps[row] = lengths_m[edge] / durations_s[row] if moves else 0.0
    return edges, row_lons, row_lats, speeds_mps
