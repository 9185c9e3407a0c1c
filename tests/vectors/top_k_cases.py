"""Ranking and regions of top-k subscriptions: ties, the bound to the last bit, expiry, stationary."""

from __future__ import annotations

import math

from safe_region.scoring.formulas import REACH_SLACK, length
from tests.vectors.draws import Draws
from tests.vectors.notation import double

LATE = "9007199254740991"
"""A time that no case reaches."""


def cases():
    yield _ties()
    yield _roundings()
    yield from _bounds()
    for seed, scale_m in enumerate((1e3, 3e4, 2e6)):
        yield _random_walk(seed, scale_m)
    yield _everything_is_held()
    yield from _stationary()


def entry(number, x_m, y_m, r_m=0.0, expiry_ms=LATE):
    """Return an object of a buffer."""
    return {"id": str(number), "x_m": x_m, "y_m": y_m, "r_m": r_m, "expiry_ms": str(expiry_ms)}


def update(anchor, reach_m, add=(), drop=(), reach_id=0, **others):
    """Return the step of a delta."""
    bound = {"length_m": double(reach_m), "object_id": str(reach_id)}
    step = {"op": "update", "anchor": list(anchor), "bound": bound, "add": list(add)}
    return {**step, "drop": list(map(str, drop)), **others}


def evaluate(x_m, y_m, now_ms=0, uncertainty_m=0.0):
    """Return the step of an evaluation."""
    place = {"op": "evaluate", "x_m": x_m, "y_m": y_m}
    return {**place, "now_ms": str(now_ms), "uncertainty_m": uncertainty_m}


def _top_k(name, k, steps):
    return {"name": name, "given": {"region": "top_k", "k": k}, "steps": steps}


def _ties():
    """Equal lengths, made of different distances and constants: the smaller id comes first."""
    large = 2**53
    held = [
        entry(large + 3, 3.0, 4.0, 5.0),
        entry(large + 1, 6.0, 8.0),
        entry(large + 2, -8.0, 6.0),
        entry(7, 0.0, 0.0, 10.0),
        entry(10, 0.0, 0.0, math.nextafter(10.0, 0.0)),
        entry(9, 0.0, 0.0, math.nextafter(10.0, 11.0)),
    ]
    steps = [update((0.0, 0.0), 1e6, held)]
    steps += [evaluate(x_m, y_m) for x_m, y_m in ((0.0, 0.0), (-0.0, 1e-9), (3.0, 4.0))]
    return _top_k("ties are decided by the id", 5, steps)


def _roundings():
    """Lengths whose rounding shows the expression: `hypot` or a fused multiplication differ from it."""
    draws, held = Draws(11), []
    while len(held) < 24:
        x_m, y_m = draws.between(-5e4, 5e4), draws.between(-5e4, 5e4)
        if math.hypot(x_m, y_m) != math.sqrt(x_m * x_m + y_m * y_m):
            held.append(entry(len(held) + 1, x_m, y_m, draws.one_of((0.0, draws.between(0.0, 1e3)))))
    return _top_k("one expression for lengths", 24, [update((0.0, 0.0), 1e9, held), evaluate(0.0, 0.0)])


def _bounds():
    """The reach at which the test fails, and the doubles next to it."""
    draws = Draws(12)
    for uncertainty_m in (0.0, 12.5):
        steps = []
        for _ in range(6):
            anchor = draws.between(-1e4, 1e4), draws.between(-1e4, 1e4)
            held = [
                entry(i, draws.between(-1e4, 1e4), draws.between(-1e4, 1e4), draws.between(0.0, 5e3))
                for i in (1, 2, 3)
            ]
            x_m, y_m = anchor[0] + draws.between(-500.0, 500.0), anchor[1] + draws.between(-500.0, 500.0)
            reach_m = _reach(anchor, held, x_m, y_m, uncertainty_m)
            # The first double at which the test holds, and the three before it.
            while used_m(anchor, held, x_m, y_m, uncertainty_m) < reach_m * (1.0 - REACH_SLACK):
                reach_m = math.nextafter(reach_m, 0.0)
            for _ in range(4):
                steps.append(update(anchor, reach_m, held, is_snapshot=True))
                steps.append(evaluate(x_m, y_m, uncertainty_m=uncertainty_m))
                steps.append(evaluate(*anchor, uncertainty_m=uncertainty_m))
                reach_m = math.nextafter(reach_m, math.inf)
        yield _top_k(f"the bound, for fixes to {uncertainty_m:g} m", 2, steps)


def used_m(anchor, held, x_m, y_m, uncertainty_m):
    """Return the left side of the test, for k = 2."""
    lengths = sorted(length(x_m - one["x_m"], y_m - one["y_m"], one["r_m"]) for one in held)
    return lengths[1] + length(x_m - anchor[0], y_m - anchor[1], 0.0) + 2.0 * uncertainty_m


def _reach(anchor, held, x_m, y_m, uncertainty_m):
    return used_m(anchor, held, x_m, y_m, uncertainty_m) / (1.0 - REACH_SLACK) * (1.0 + 4e-16)


def _random_walk(seed, scale_m):
    draws, steps, held, number, now_ms = Draws(seed), [], set(), 0, 0

    def place():
        return draws.between(-scale_m, scale_m), draws.between(-scale_m, scale_m)

    for _ in range(14):
        add = []
        for _ in range(draws.whole(0, 6)):
            number += 1
            held.add(number)
            constant_m = draws.one_of((0.0, draws.between(0.0, scale_m)))
            add.append(entry(number, *place(), constant_m, now_ms + draws.whole(1, 40)))
        drop = [*draws.some_of(sorted(held), 0.2), 10**6]
        held.difference_update(drop)
        steps.append(update(place(), draws.between(0.0, 2.0 * scale_m), add, drop, number + 1))
        for _ in range(2):
            uncertainty_m = draws.one_of((0.0, draws.between(0.0, scale_m / 50.0)))
            steps.append(evaluate(*place(), now_ms, uncertainty_m))
        now_ms += draws.whole(0, 5)
        steps.append({"op": "forget_expired", "now_ms": str(now_ms)})
    return _top_k(f"a walk in {2.0 * scale_m / 1e3:g} km", 3, steps)


def _everything_is_held():
    held = [entry(2, 5.0, 0.0, expiry_ms=10), entry(1, 1.0, 0.0)]
    steps = [update((0.0, 0.0), math.inf, held), evaluate(9e5, 0.0), evaluate(9e5, 0.0, 10, 50.0)]
    steps.append(update((0.0, 0.0), math.inf, is_snapshot=True))
    steps.append(evaluate(0.0, 0.0))
    return _top_k("an infinite reach", 4, steps)


def _stationary():
    given = {"region": "stationary", "k": 2}
    held = [entry(1, 1.0, 0.0, expiry_ms=10), entry(2, 2.0, 0.0, expiry_ms=20)]
    here = (0.0, 0.0)
    steps = [
        update(here, 9.0, held, time_ms="5", is_snapshot=True),
        evaluate(*here, 5),
        evaluate(1e-9, 0.0, 5),
        evaluate(*here, 5, 1.0),
        evaluate(*here, 10),
        {"op": "forget_expired", "now_ms": "10"},
        evaluate(*here, 10),
        update(here, 9.0, [entry(3, 3.0, 0.0, expiry_ms=30)], time_ms="10"),
        evaluate(*here, 10),
        {"op": "forget_expired", "now_ms": "20"},
        evaluate(*here, 20),
        # The server has nothing in place of 2: a short result is exact.
        update(here, 9.0, [], time_ms="20"),
        evaluate(*here, 20),
        evaluate(*here, 30),
    ]
    yield {"name": "stationary", "given": given, "steps": steps}
    late = [
        update(here, 9.0, held, time_ms="5", is_snapshot=True),
        {"op": "forget_expired", "now_ms": "10"},
        # Sent before the server knew of the expiry.
        update(here, 9.0, [entry(3, 1.5, 0.0, expiry_ms=30)], [2], time_ms="9"),
        evaluate(*here, 10),
        update(here, 9.0, [entry(4, 1.75, 0.0, expiry_ms=30)], time_ms="10"),
        evaluate(*here, 10),
    ]
    yield {"name": "stationary, deltas in transit at an expiry", "given": given, "steps": late}
