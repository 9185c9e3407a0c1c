"""Regions of boolean subscriptions: circles, rectangles, fixed ranges, areas, too many matches."""

from __future__ import annotations

import math

from safe_region.regions.ranges import ROUNDING_M, ROUNDING_SHARE
from safe_region.scoring.formulas import REACH_SLACK
from tests.vectors.draws import Draws
from tests.vectors.notation import double
from tests.vectors.top_k_cases import entry, evaluate

_CIRCLE = {"region": "circle", "radius_m": 500.0}
_RECTANGLE = {"region": "rectangle", "width_m": 1000.0, "height_m": 600.0}
_FIXED = {"region": "fixed"}


def cases():
    yield _edges("the edge of a circle", _CIRCLE, [(300.0, 400.0), (500.0, 0.0), (0.0, -500.0)])
    yield _edges("the edge of a rectangle", _RECTANGLE, [(500.0, 300.0), (-500.0, 0.0), (0.0, 300.0)])
    for name, given in (("circle", _CIRCLE), ("rectangle", _RECTANGLE)):
        yield _bound(f"the bound of a {name}", given)
        yield _too_many(f"a {name} with too many matches", given)
    for seed, (name, given) in enumerate(
        {"circle": _CIRCLE, "rectangle": _RECTANGLE, "fixed range": _FIXED}.items()
    ):
        for scale_m in (1.0, 2e3):
            yield _random_walk(f"a {name}, coordinates of {scale_m * 5e3:g} m", given, seed, scale_m)
    yield _too_many("a fixed range with too many matches", _FIXED)


def update(anchor, slack_m, add=(), drop=(), *, too_many=False, matches_max=1000, **others):
    """Return the step of a delta."""
    bound = {"slack_m": double(slack_m), "too_many": too_many, "matches_max": matches_max}
    step = {"op": "update", "anchor": list(anchor), "bound": bound, "add": list(add)}
    return {**step, "drop": list(map(str, drop)), **others}


def _edges(name, given, offsets):
    """Objects at the edge about a place, and at the doubles beside it."""
    held = []
    for x_m, y_m in offsets:
        for x, y in ((x_m, y_m), (_out(x_m), y_m), (x_m, _out(y_m))):
            held.append(entry(len(held) + 1, x, y))
    touching = {"rectangle": [500.0, -20.0, 700.0, 20.0]}
    held.append({**entry(90, 600.0, 0.0), "area": touching})
    held.append({**entry(91, 600.0, 0.0), "area": {"rectangle": [_out(500.0), -20.0, 700.0, 20.0]}})
    triangle = [[500.0, 0.0], [800.0, 90.0], [800.0, -90.0]]
    held.append({**entry(92, 700.0, 0.0), "area": {"polygon": triangle}})
    triangle = [[_out(500.0), 0.0], [800.0, 90.0], [800.0, -90.0]]
    held.append({**entry(93, 700.0, 0.0), "area": {"polygon": triangle}})
    steps = [
        update((0.0, 0.0), 50.0, held),
        evaluate(0.0, 0.0),
        evaluate(10.0, -7.5),
        evaluate(1e-9, 0.0),
    ]
    return {"name": name, "given": given, "steps": steps}


def _out(value):
    return math.nextafter(value, math.copysign(math.inf, value))


def _bound(name, given):
    """The distance from the anchor at which the test fails, and the doubles next to it."""
    steps = []
    half_m = given.get("radius_m") or given["width_m"] / 2.0
    for slack_m in (0.0, 1e-12, 100.0, 12345.678):
        for anchor_m in (0.0, 4e6):
            steps.append(update((anchor_m, 0.0), slack_m))
            x_m = anchor_m + _farthest_m(half_m, slack_m, anchor_m)
            x_m = math.nextafter(math.nextafter(x_m, 0.0), 0.0)
            for _ in range(5):
                steps.append(evaluate(x_m, 0.0))
                x_m = math.nextafter(x_m, math.inf)
            steps.append(evaluate(anchor_m, 0.0))
            steps.append(evaluate(anchor_m, 0.0, uncertainty_m=40.0))
    return {"name": name, "given": given, "steps": steps}


def _farthest_m(half_m, slack_m, anchor_m):
    """Return about the largest distance from the anchor at which the test holds."""
    return max(
        0.0, (half_m + slack_m) * (1.0 - REACH_SLACK) - half_m - ROUNDING_M - ROUNDING_SHARE * anchor_m
    )


def _too_many(name, given):
    held = [entry(i, 40.0 * i, 0.0, expiry_ms=100 + i) for i in range(1, 11)]
    steps = [update((0.0, 0.0), 0.0, held, too_many=True, matches_max=10)]
    steps += [evaluate(0.0, 0.0), evaluate(20.0, 0.0), evaluate(49.9, 0.0), evaluate(50.0, 0.0)]
    steps += [evaluate(0.0, 0.0, 101), evaluate(0.0, 0.0, 102)]
    steps.append({"op": "forget_expired", "now_ms": "102"})
    steps.append(evaluate(0.0, 0.0, 102, 7.0))
    return {"name": name, "given": given, "steps": steps}


def _random_walk(name, given, seed, scale):
    draws, steps, held, number, now_ms = Draws(seed), [], set(), 0, 0
    middle = draws.between(-5e3, 5e3) * scale, draws.between(-5e3, 5e3) * scale

    def place(reach_m):
        return middle[0] + draws.between(-reach_m, reach_m), middle[1] + draws.between(-reach_m, reach_m)

    for _ in range(7):
        add = []
        for _ in range(draws.whole(0, 7)):
            number += 1
            held.add(number)
            add.append(_entry(draws, number, *place(900.0), now_ms + draws.whole(1, 40)))
        drop = draws.some_of(sorted(held), 0.2)
        held.difference_update(drop)
        slack_m = math.inf if given == _FIXED else draws.between(0.0, 200.0)
        steps.append(update(place(50.0), slack_m, add, drop))
        margins_m = [draws.one_of((0.0, draws.between(0.0, 20.0))) for _ in range(3)]
        steps += [evaluate(*place(150.0), now_ms, margin_m) for margin_m in margins_m]
        now_ms += draws.whole(0, 5)
        steps.append({"op": "forget_expired", "now_ms": str(now_ms)})
    return {"name": name, "given": given, "steps": steps}


def _entry(draws, number, x_m, y_m, expiry_ms):
    made = entry(number, x_m, y_m, expiry_ms=expiry_ms)
    size_m = draws.between(1.0, 200.0)
    kind = draws.whole(0, 2)
    if kind == 1:
        made["area"] = {"rectangle": [x_m - size_m, y_m - size_m / 2.0, x_m + size_m, y_m + size_m / 2.0]}
    if kind == 2:
        corners = [[x_m - size_m, y_m - size_m], [x_m + size_m, y_m - size_m / 3.0], [x_m, y_m + size_m]]
        made["area"] = {"polygon": corners}
    return made
