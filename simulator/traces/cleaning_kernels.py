"""Kernel that classifies points of traces, in the order of their files. O(points).

A trace with mostly decreasing times is read from its end. A point that is not later than the one before
goes back, and a point that cannot be reached from the one before at the greatest speed is a jump. But the
one before may be the wrong one. So if `RUN` points in a row go back or jump, but fit each other, and
fewer than `RUN` stand against them, these few are dropped. If as many stand against them, points that
jumped start another piece; points that went back stay dropped.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from safe_region.jit import kernel, leaf

RUN = 3

KEPT, DUPLICATE, BACK, JUMP, ISOLATED = 0, 5, 6, 7, 8
"""As in `points.Verdict`."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.int8]


@leaf
def _is_reachable(ts_ms: Longs, xs_m: Floats, ys_m: Floats, a: int, b: int, speed_mps_max: float) -> bool:
    dx_m = xs_m[b] - xs_m[a]
    dy_m = ys_m[b] - ys_m[a]
    return bool(math.sqrt(dx_m * dx_m + dy_m * dy_m) <= speed_mps_max * (ts_ms[b] - ts_ms[a]) / 1000.0)


@leaf
def _goes_down(ts_ms: Longs, verdicts: Bytes, first: int, end: int) -> bool:
    """Whether more steps of a trace go back in time than forwards."""
    balance = 0
    last = -1
    for i in range(first, end):
        if verdicts[i] == KEPT:
            if last >= 0 and ts_ms[i] != ts_ms[last]:
                balance += 1 if ts_ms[i] > ts_ms[last] else -1
            last = i
    return balance < 0


@leaf
def _drop_times(ts_ms: Longs, verdicts: Bytes, first: int, end: int, step: int, run: Longs) -> None:
    """Mark points that are not later than all before, or the few before that were far ahead."""
    last = -1
    run_count = 0
    i = first if step > 0 else end - 1
    while first <= i < end:
        if verdicts[i] != KEPT:
            i += step
            continue
        if last < 0 or ts_ms[i] > ts_ms[last]:
            last = i
            run_count = 0
        elif ts_ms[i] == ts_ms[last] or (run_count > 0 and ts_ms[i] == ts_ms[run[run_count - 1]]):
            verdicts[i] = DUPLICATE
        else:
            verdicts[i] = BACK
            if run_count > 0 and ts_ms[i] < ts_ms[run[run_count - 1]]:
                run_count = 0
            run[run_count] = i
            run_count += 1
            if run_count == RUN:
                run_count = 0
                if _take_back(ts_ms, verdicts, first, end, step, last, ts_ms[run[0]]):
                    for k in range(RUN):
                        verdicts[run[k]] = KEPT
                    last = i
        i += step


@leaf
def _take_back(
    ts_ms: Longs, verdicts: Bytes, first: int, end: int, step: int, last: int, time_ms: int
) -> bool:
    """Mark the last points that are not earlier than a time, if they are fewer than `RUN`."""
    for is_done in range(2):
        count = 0
        i = last
        while first <= i < end and count < RUN:
            if verdicts[i] == KEPT:
                if ts_ms[i] < time_ms:
                    break
                count += 1
                if is_done:
                    verdicts[i] = BACK
            i -= step
        if count == RUN:
            return False
    return True


@leaf
def _drop_piece(verdicts: Bytes, pieces: Ints, first: int, end: int, piece: int, verdict: int) -> None:
    """Mark the points of a piece."""
    for i in range(first, end):
        if verdicts[i] == KEPT and pieces[i] == piece:
            verdicts[i] = verdict


@leaf
def _cut(
    ts_ms: Longs,
    xs_m: Floats,
    ys_m: Floats,
    verdicts: Bytes,
    pieces: Ints,
    first: int,
    end: int,
    step: int,
    gap_ms: int,
    speed_mps_max: float,
    run: Longs,
) -> int:
    """Cut a trace into pieces and mark jumps; return the number of pieces."""
    piece = -1
    kept = 0  # points of the piece
    last = -1
    run_count = 0
    i = first if step > 0 else end - 1
    while first <= i < end:
        if verdicts[i] != KEPT:
            i += step
            continue
        if last < 0 or ts_ms[i] - ts_ms[last] > gap_ms:
            piece += 1
            pieces[i] = piece
            kept = 1
            last = i
            run_count = 0
        elif _is_reachable(ts_ms, xs_m, ys_m, last, i, speed_mps_max):
            pieces[i] = piece
            kept += 1
            last = i
            run_count = 0
        else:
            verdicts[i] = JUMP
            if run_count > 0 and not _is_reachable(
                ts_ms, xs_m, ys_m, run[run_count - 1], i, speed_mps_max
            ):
                run_count = 0
            run[run_count] = i
            run_count += 1
            if run_count == RUN:
                if kept < RUN:
                    _drop_piece(verdicts, pieces, first, end, piece, JUMP)
                piece += 1
                for k in range(RUN):
                    verdicts[run[k]] = KEPT
                    pieces[run[k]] = piece
                kept = RUN
                last = i
                run_count = 0
        i += step
    return piece + 1


@leaf
def _finish(
    ts_ms: Longs,
    verdicts: Bytes,
    pieces: Ints,
    steps_ms: Longs,
    first: int,
    end: int,
    step: int,
    points_min: int,
    counts: Longs,
) -> None:
    """Drop pieces with too few points, number the others from 0, and write their steps."""
    counts[: end - first] = 0
    for i in range(first, end):
        if verdicts[i] == KEPT:
            counts[pieces[i]] += 1
    number = -1
    last = -1
    previous = -1
    i = first if step > 0 else end - 1
    while first <= i < end:
        if verdicts[i] == KEPT:
            if counts[pieces[i]] < points_min:
                verdicts[i] = ISOLATED
            else:
                if pieces[i] != previous:
                    previous = pieces[i]
                    number += 1
                    last = -1
                if last >= 0:
                    steps_ms[i] = ts_ms[i] - ts_ms[last]
                last = i
                pieces[i] = number
        i += step


@kernel
def classify(
    offsets: Longs,
    ts_ms: Longs,
    xs_m: Floats,
    ys_m: Floats,
    verdicts: Bytes,
    gap_ms: int,
    speed_mps_max: float,
    points_min: int,
) -> tuple[Ints, Longs]:
    """Classify the points of many traces.

    Parameters
    ----------
    offsets
        Points of trace n are offsets[n]..offsets[n + 1], in the order of their file.
    ts_ms, xs_m, ys_m
        Their times and positions on the plane.
    verdicts
        The known verdicts, 0 for points that may be kept; changed in place.
    gap_ms
        After a longer time without a point another piece starts.
    speed_mps_max
        The greatest speed.
    points_min
        The least points of a piece.

    Returns
    -------
    For each kept point its piece, numbered from 0 in each trace, and the milliseconds since the point
    before, -1 for the first of a piece; for other points -1.
    """
    pieces = np.full(ts_ms.shape[0], -1, np.int32)
    steps_ms = np.full(ts_ms.shape[0], -1, np.int64)
    longest = 0
    for n in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[n + 1] - offsets[n])
    counts = np.zeros(longest, np.int64)
    run = np.zeros(RUN, np.int64)
    for n in range(offsets.shape[0] - 1):
        first, end = offsets[n], offsets[n + 1]
        step = -1 if _goes_down(ts_ms, verdicts, first, end) else 1
        _drop_times(ts_ms, verdicts, first, end, step, run)
        _cut(ts_ms, xs_m, ys_m, verdicts, pieces, first, end, step, gap_ms, speed_mps_max, run)
        _finish(ts_ms, verdicts, pieces, steps_ms, first, end, step, points_min, counts)
    for i in range(ts_ms.shape[0]):
        if verdicts[i] != KEPT:
            pieces[i] = -1
    return pieces, steps_ms
