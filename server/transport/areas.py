"""Areas of objects on the wire."""

from __future__ import annotations

from nearcast.v1 import objects_pb2
from safe_region.earth.shapes import Bounds, ObjectArea, Polygon
from server.transport.fields import missing
from server.transport.ranges import bounds_from, bounds_message, ring_from, ring_message


def area_from(message: objects_pb2.ObjectArea, field: str) -> ObjectArea:
    """Return the area in a message.

    Raises
    ------
    RefusalError
        If it is neither of the two shapes.
    """
    match message.WhichOneof("shape"):
        case "rectangle":
            return bounds_from(message.rectangle)
        case "polygon":
            return Polygon(ring_from(message.polygon))
        case _:
            raise missing(f"{field}.shape")


def area_message(area: ObjectArea) -> objects_pb2.ObjectArea:
    """Return the message of an area."""
    if isinstance(area, Bounds):
        return objects_pb2.ObjectArea(rectangle=bounds_message(area))
    return objects_pb2.ObjectArea(polygon=ring_message(area.outer))
