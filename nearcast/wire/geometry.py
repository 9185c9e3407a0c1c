"""Positions, rectangles, polygons, ranges, areas of objects, and frames."""

from __future__ import annotations

from collections.abc import Iterable

from nearcast.v1 import geometry_pb2, objects_pb2, subscriptions_pb2
from safe_region.earth.frame import Area, Frame, Point
from safe_region.earth.shapes import Bounds, Circle, ObjectArea, Polygon, Position, Range, Rectangle


def position_from(message: geometry_pb2.Position) -> Position:
    """Return the position in a message."""
    return message.lon, message.lat


def position_message(position: Position) -> geometry_pb2.Position:
    """Return the message of a position."""
    lon, lat = position
    return geometry_pb2.Position(lon=lon, lat=lat)


def plane_point(message: geometry_pb2.Point) -> Point:
    """Return the position on the plane in a message."""
    return Point(message.x_m, message.y_m)


def bounds_from(message: geometry_pb2.Bounds) -> Bounds:
    """Return the rectangle in a message."""
    return Bounds(message.lon_min, message.lat_min, message.lon_max, message.lat_max)


def bounds_message(bounds: Bounds) -> geometry_pb2.Bounds:
    """Return the message of a rectangle."""
    return geometry_pb2.Bounds(
        lon_min=bounds.lon_min, lat_min=bounds.lat_min, lon_max=bounds.lon_max, lat_max=bounds.lat_max
    )


def ring_from(message: geometry_pb2.Ring) -> tuple[Position, ...]:
    """Return the corners of a polygon in a message."""
    return tuple([(one.lon, one.lat) for one in message.vertices])


def ring_message(ring: Iterable[Position]) -> geometry_pb2.Ring:
    """Return the message of a polygon's corners."""
    return geometry_pb2.Ring(vertices=map(position_message, ring))


def area_from(message: objects_pb2.ObjectArea) -> ObjectArea | None:
    """Return the area of an object in a message; None if its shape is unknown here."""
    match message.WhichOneof("shape"):
        case "rectangle":
            return bounds_from(message.rectangle)
        case "polygon":
            return Polygon(ring_from(message.polygon))
        case _:
            return None


def area_message(area: ObjectArea) -> objects_pb2.ObjectArea:
    """Return the message of the area of an object."""
    if isinstance(area, Bounds):
        return objects_pb2.ObjectArea(rectangle=bounds_message(area))
    return objects_pb2.ObjectArea(polygon=ring_message(area.outer))


def range_from(message: subscriptions_pb2.Boolean) -> Range | None:
    """Return the range in which objects match; None if its shape is unknown here."""
    match message.WhichOneof("range"):
        case "circle":
            circle = message.circle
            center = position_from(circle.center) if circle.HasField("center") else None
            return Circle(circle.radius_m, center)
        case "rectangle":
            rectangle = message.rectangle
            if rectangle.HasField("bounds"):
                return bounds_from(rectangle.bounds)
            return Rectangle(rectangle.width_m, rectangle.height_m)
        case "polygon":
            polygon = message.polygon
            return Polygon(ring_from(polygon.outer), tuple(map(ring_from, polygon.holes)))
        case _:
            return None


def write_range(where: Range, message: subscriptions_pb2.Boolean) -> None:
    """Write the range in which objects match."""
    match where:
        case Circle(radius_m, center):
            message.circle.radius_m = radius_m
            if center is not None:
                message.circle.center.lon, message.circle.center.lat = center
        case Bounds():
            message.rectangle.bounds.CopyFrom(bounds_message(where))
        case Rectangle(width_m, height_m):
            message.rectangle.width_m, message.rectangle.height_m = width_m, height_m
        case Polygon(outer, holes):
            message.polygon.CopyFrom(
                geometry_pb2.Polygon(outer=ring_message(outer), holes=map(ring_message, holes))
            )


def frame_from(message: geometry_pb2.Frame) -> Frame:
    """Return the frame in a message."""
    return Frame(
        Area(message.lon_min, message.lat_min, message.lon_max, message.lat_max),
        message.lon0_deg,
        message.lat0_deg,
        message.x_m_per_deg,
        message.y_m_per_deg,
        message.maxdist_m,
    )


def frame_message(frame: Frame) -> geometry_pb2.Frame:
    """Return the message of a frame."""
    return geometry_pb2.Frame(
        **frame.area._asdict(),
        lon0_deg=frame.lon0_deg,
        lat0_deg=frame.lat0_deg,
        x_m_per_deg=frame.x_m_per_deg,
        y_m_per_deg=frame.y_m_per_deg,
        maxdist_m=frame.maxdist_m,
    )
