"""Circles for the geofencing of phones: of which objects, how large, and when none is for refresh."""

from __future__ import annotations

import math

from tests.vectors.draws import Draws
from tests.vectors.frames import CONTINENT
from tests.vectors.sessions.messages import (
    CONNECT,
    DISCONNECT,
    HERE,
    NOW_MS,
    PASS_TIME,
    TEA,
    delta,
    entry,
    given,
    move,
    slack,
    snapshot,
    subscribe,
    welcome,
)

RADIUS_M = 5000.0


def _moving(**shape):
    """Return the spec of a range that moves."""
    boolean = {"clauses": [{"required": ["tea"]}], "moving": True, **shape}
    return {"boolean": boolean, "region": "REGION_MODE_ANCHORED"}


TOWN = _moving(circle={"radius_m": RADIUS_M})
NARROW = _moving(circle={"radius_m": 2000.0})
SQUARE = _moving(rectangle={"width_m": 4000.0, "height_m": 4000.0})


def cases():
    for name, steps in {
        "a device that moves; areas, ties, and objects that end": _moves(),
        "when there is no refresh circle, and arguments that are refused": _without_refresh(),
    }.items():
        yield {"name": name, "given": given(), "steps": steps}
    yield _random("in a frame as wide as a continent", CONTINENT, Draws(2))


def ask(radius_m=150.0, limit=2, **others):
    """Return the step that computes the circles."""
    return {"op": "os_regions", "radius_m": radius_m, "limit": limit, **others}


def _moves():
    square = {"rectangle": {"lon_min": 14.51, "lat_min": 35.49, "lon_max": 14.53, "lat_max": 35.52}}
    corners = ((14.495, 35.5), (14.46, 35.51), (14.47, 35.499))
    polygon = {"polygon": {"vertices": [{"lon": lon, "lat": lat} for lon, lat in corners]}}
    add = [entry(1, 14.52, area=square), entry(2, 14.475, area=polygon)]
    add += [entry(4, 14.53, expiry_ms=NOW_MS + 500), entry(3, 14.53)]
    lasting = {**TOWN, "window": {"duration_ms": "1000"}}
    steps = [subscribe(lasting), CONNECT, welcome(), snapshot(1, add=add, slack=slack(3000.0))]
    for lon in (14.505, 14.58):
        steps += [move(lon), ask(limit=1), ask(1000.0, 3)]
    for version, time_ms in ((2, 500), (3, 1000)):
        tick = {"cause": "PUBLISHED", "slack": slack(3000.0), "time_ms": str(NOW_MS + time_ms)}
        steps += [delta(version, **tick), PASS_TIME, ask(limit=19)]
    return steps


def _without_refresh():
    """A device that does not know its matches, knows all, has a poor fix, or too many matches."""
    steps = [subscribe(TOWN, "t"), ask(), CONNECT, welcome(), ask()]
    steps += [snapshot(1, add=[entry(1, 14.51), entry(2, 14.52)], slack=slack(math.inf))]
    steps += [ask(), ask(limit=1), delta(2, slack=slack(0.0)), ask(4770.0), ask(4765.0)]
    steps += [move(*HERE, accuracy_m=400.0), ask(4400.0), ask(4300.0), move(*HERE)]
    steps += [ask(metres) for metres in (0.0, math.nextafter(RADIUS_M, math.inf))]
    steps += [ask(limit=limit) for limit in (0, 100, 99)]
    steps += [delta(3, slack=slack(0.0, too_many=True)), ask(), delta(4, slack=slack(0.0))]
    steps += [DISCONNECT, move(14.501), ask()]
    steps += [CONNECT, welcome(4, [(1, TOWN, "t")], resumed=True), subscribe(NARROW, "t"), ask()]
    steps += [snapshot(5, add=[entry(1, 14.51)], slack=slack(0.0)), ask(), ask(2001.0)]
    return [*steps, *map(subscribe, (TEA, SQUARE)), *(ask(subscription_id=number) for number in (2, 3))]


def _random(name, frame, draws):
    area = frame.area
    at = draws.between(area.lon_min, area.lon_max), draws.between(area.lat_min, area.lat_max)
    anchor = frame.project(*at)

    def place(reach_m):
        """Draw degrees of a place near the anchor."""
        offset_m = draws.between(-reach_m, reach_m), draws.between(-reach_m, reach_m)
        return frame.unproject(anchor.x_m + offset_m[0], anchor.y_m + offset_m[1])

    add = [entry(i, *place(RADIUS_M), frame=frame, expiry_ms=NOW_MS + i) for i in range(1, 5)]
    bound = {"at": at, "frame": frame, "slack": slack(draws.between(500.0, 4000.0))}
    steps = [subscribe(TOWN), CONNECT, welcome(frame=frame), snapshot(1, add=add, **bound)]
    for limit in (1, 3):
        steps.append(move(*place(2000.0), accuracy_m=draws.one_of((0.0, draws.between(0.0, 90.0)))))
        steps.append(ask(draws.between(50.0, 900.0), limit))
    return {"name": name, "given": given(lon=at[0], lat=at[1]), "steps": steps}
