"""Orientation, distances to areas, and areas that touch boxes or miss them by one double."""

from __future__ import annotations

import math

from nearcast.v1 import geometry_pb2, objects_pb2
from safe_region.geometry.exact_geometry import on_grid, orientation
from tests.vectors.draws import Draws
from tests.vectors.frames import FRAMES, frame_message
from tests.vectors.notation import message_json

_BESIDE_COUNT = 12
_HOOK = [[0.0, 0.0], [4000.0, 0.0], [4000.0, 1000.0], [1000.0, 1000.0], [1000.0, 3000.0], [0.0, 3000.0]]
_THIN = [[0.1, 0.1], [1000.3, 1000.3], [500.2, 500.20000000000005]]
_FAR = [[9123456.7, -4123456.7], [9123956.9, -4123456.7], [9123700.1, -4122900.3]]


def cases():
    yield _orientations()
    shapes = {
        "a rectangle": {"rectangle": [-100.5, -50.25, 300.75, 80.125]},
        "a hook": {"polygon": _HOOK},
        "a thin triangle": {"polygon": _THIN},
        "a triangle far from the middle": {"polygon": _FAR},
    }
    for seed, (name, area) in enumerate(shapes.items()):
        yield {"name": name, "given": {"area": area}, "steps": _checks(area, Draws(seed))}
    yield from _beside_edges()
    yield _in_degrees()


def _orientations():
    """Make points on lines through doubles, and points one double beside them."""
    draws, steps = Draws(7), []
    for scale in (1.0, 1e3, 1e7):
        for _ in range(12):
            ax, ay = draws.between(-scale, scale), draws.between(-scale, scale)
            bx, by = draws.between(-scale, scale), draws.between(-scale, scale)
            share = draws.one_of((0.5, 0.25, 1.0 / 3.0, 2.0, draws.random()))
            on = [ax + share * (bx - ax), ay + share * (by - ay)]
            beside = draws.one_of(
                (on, [math.nextafter(on[0], math.inf), on[1]], [on[0], math.nextafter(on[1], -math.inf)])
            )
            steps.append({"op": "orientation", "a": [ax, ay], "b": [bx, by], "c": beside})
    exact = [
        ([0.0, 0.0], [3.0, 3.0], [1.0, 1.0]),
        ([0.5, 0.5], [12.0, 12.0], [24.0, 24.0]),
        (
            [0.50000000000002531, 0.5000000000000171],
            [17.300000000000001, 17.300000000000001],
            [24.0, 24.0],
        ),
        ([1e-300, 1e-300], [1e-299, 1e-299], [5e-300, 5.000000000000001e-300]),
        ([5e-324, 0.0], [0.0, 5e-324], [5e-324, 5e-324]),
    ]
    steps += [{"op": "orientation", "a": a, "b": b, "c": c} for a, b, c in exact]
    return {"name": "orientations", "given": {}, "steps": steps}


def _checks(area, draws):
    vertices = area.get("polygon") or _corners_of(area["rectangle"])
    xs, ys = [x for x, _ in vertices], [y for _, y in vertices]
    width, height = max(xs) - min(xs), max(ys) - min(ys)
    points = [list(one) for one in vertices]
    for i, (x_m, y_m) in enumerate(vertices):
        before_x, before_y = vertices[i - 1]
        points.append([(x_m + before_x) / 2.0, (y_m + before_y) / 2.0])
        points.append([math.nextafter(x_m, math.inf), y_m])
    west, south = min(xs) - width / 2.0, min(ys) - height / 2.0
    points += [
        [west + draws.between(0.0, 2.0 * width), south + draws.between(0.0, 2.0 * height)]
        for _ in range(12)
    ]
    steps = [{"op": "distance", "x_m": x_m, "y_m": y_m} for x_m, y_m in points]
    for x_m, y_m in points:
        side = draws.between(0.0, width / 2.0)
        # A corner of the box is the point, so that boxes at vertices and edges touch.
        boxes = ([x_m, y_m, x_m + side, y_m + side], [x_m - side, y_m - side, x_m, y_m])
        steps += [{"op": "meets", "box": box} for box in boxes]
    return steps


def _beside_edges():
    """Make triangles, and points so near to an edge that doubles alone give the wrong side of it."""
    draws, found = Draws(9), 0
    while found < _BESIDE_COUNT:
        a, b = ([draws.between(0.5, 25.0), draws.between(0.5, 25.0)] for _ in range(2))
        share = draws.random()
        c = [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]
        c[0] = math.nextafter(c[0], draws.one_of((-math.inf, math.inf)))
        rounded = (a[0] - c[0]) * (b[1] - c[1]) - (a[1] - c[1]) * (b[0] - c[0])
        (grid,) = on_grid([(a, b, c)])
        if rounded != 0.0 and rounded * orientation(*grid) <= 0.0:
            found += 1
            triangle = [a, b, [a[0] - 30.0, b[1] + 40.0]]
            steps = [
                {"op": "distance", "x_m": c[0], "y_m": c[1]},
                {"op": "meets", "box": [c[0], c[1], c[0], c[1]]},
            ]
            given = {"area": {"polygon": triangle}}
            yield {"name": f"beside an edge, {found}", "given": given, "steps": steps}


def _corners_of(rectangle):
    x1_m, y1_m, x2_m, y2_m = rectangle
    return [[x1_m, y1_m], [x2_m, y1_m], [x2_m, y2_m], [x1_m, y2_m]]


def _in_degrees():
    steps = []
    for frame in FRAMES.values():
        west, south, east, north = frame.area
        bounds = geometry_pb2.Bounds(lon_min=west, lat_min=south, lon_max=east, lat_max=north)
        ring = geometry_pb2.Ring(
            vertices=[
                geometry_pb2.Position(lon=lon, lat=lat)
                for lon, lat in ((west, south), (east, south), (west + 0.1, north))
            ]
        )
        for area in (objects_pb2.ObjectArea(rectangle=bounds), objects_pb2.ObjectArea(polygon=ring)):
            message = message_json(frame_message(frame))
            steps.append({"op": "project", "frame": message, "area": message_json(area)})
    return {"name": "areas in degrees", "given": {}, "steps": steps}
