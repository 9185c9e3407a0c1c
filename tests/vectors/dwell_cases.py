"""Dwell times: misses, deltas in transit, and more positions than a device keeps."""

from __future__ import annotations

from nearcast.protocol.dwell import POSITIONS_MAX
from tests.vectors.draws import Draws
from tests.vectors.top_k_cases import LATE, entry


def cases():
    yield {"name": "an object enters after it", "given": _given(1000), "steps": _simple()}
    yield {"name": "deltas that arrive late", "given": _given(1000), "steps": _late()}
    yield {"name": "many positions", "given": _given(60_000), "steps": _many()}
    yield {"name": "a walk", "given": _given(4_000), "steps": _random_walk()}


def _given(dwell_ms):
    return {"dwell_ms": dwell_ms, "radius_m": 100.0}


def _move(now_ms, x_m, y_m=0.0):
    return {"op": "move", "now_ms": str(now_ms), "x_m": float(x_m), "y_m": float(y_m)}


def _hold(now_ms, x_m, y_m=0.0, add=(), drop=()):
    step = {"op": "hold", "now_ms": str(now_ms), "x_m": float(x_m), "y_m": float(y_m)}
    return {**step, "add": list(add), "drop": list(map(str, drop))}


def _pass(now_ms):
    return {"op": "pass_time", "now_ms": str(now_ms)}


def _object(number, x_m, y_m=0.0, created_ms=0):
    return {**entry(number, float(x_m), float(y_m), expiry_ms=LATE), "created_ms": str(created_ms)}


def _simple():
    return [
        _hold(500, 0, add=[_object(1, 0, created_ms=100), _object(2, 100), _object(3, 100.1)]),
        _pass(1099),
        _pass(1100),
        _pass(1500),
        _move(1600, 50),
        _move(1700, -50),
        _pass(2599),
        _pass(2600),
        _move(2700, 0),
        _pass(3700),
        {"op": "forget", "now_ms": "3700", "ids": ["1"]},
        _hold(3800, 0, drop=[2]),
        _pass(9000),
    ]


def _late():
    """An object that arrives after positions has matched at them, or has not."""
    return [
        _move(1000, 0),
        _hold(1000, 0),
        _move(1200, 150),
        _move(1400, 160),
        _move(1800, 170),
        _hold(1900, 170, add=[_object(1, 165, created_ms=1300), _object(2, 200), _object(3, 265)]),
        _pass(2200),
        _pass(2300),
        _pass(2800),
    ]


def _many():
    steps = [_hold(0, 0)]
    steps += [_move(1 + i, i % 7) for i in range(POSITIONS_MAX + 5)]
    return [*steps, _hold(300, 0, add=[_object(1, 0)]), _pass(60_005), _pass(60_006)]


def _random_walk():
    draws, steps, now_ms, number, held = Draws(3), [], 0, 0, []
    x_m = y_m = 0.0
    for _ in range(60):
        now_ms += draws.whole(1, 900)
        kind = draws.whole(0, 3)
        if kind <= 1:
            x_m += draws.between(-40.0, 40.0)
            y_m += draws.between(-40.0, 40.0)
            steps.append(_move(now_ms, x_m, y_m))
        elif kind == 2:
            number += 1
            held.append(number)
            drop = draws.some_of(held, 0.1)
            held = [one for one in held if one not in drop]
            place = x_m + draws.between(-120.0, 120.0), y_m + draws.between(-120.0, 120.0)
            add = [_object(number, *place, created_ms=now_ms - draws.whole(0, 2000))]
            steps.append(_hold(now_ms, x_m, y_m, add, drop))
        else:
            steps.append(_pass(now_ms))
    return steps
