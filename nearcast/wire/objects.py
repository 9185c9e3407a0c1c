"""Objects: new ones from publishers, and accepted ones."""

from __future__ import annotations

from nearcast import model
from nearcast.canonical import LiveObject, NewObject
from nearcast.v1 import geometry_pb2, objects_pb2
from nearcast.wire.geometry import area_from, area_message


def new_object_from(message: objects_pb2.NewObject) -> NewObject:
    """Return the object that a publisher posts."""
    fields = (tuple(message.keywords), message.ttl_ms, message.payload, message.key)
    if message.HasField("area"):
        return NewObject(0.0, 0.0, *fields, area_from(message.area))
    return NewObject(message.position.lon, message.position.lat, *fields)


def new_object_message(new: NewObject) -> objects_pb2.NewObject:
    """Return the message of an object to publish."""
    message = objects_pb2.NewObject(
        keywords=new.keywords, ttl_ms=new.ttl_ms, payload=new.payload, key=new.key
    )
    if new.area is None:
        message.position.lon, message.position.lat = new.lon, new.lat
    else:
        message.area.CopyFrom(area_message(new.area))
    return message


def object_from(message: objects_pb2.Object) -> model.LiveObject:
    """Return the object in a message, as apps see it."""
    position = message.position
    return model.LiveObject(
        message.id,
        position.lon,
        position.lat,
        frozenset(message.keywords),
        message.created_ms,
        message.expiry_ms,
        message.payload,
        message.key,
        area_from(message.area) if message.HasField("area") else None,
    )


def object_message(item: LiveObject, keywords: tuple[str, ...], key: str) -> objects_pb2.Object:
    """Return the message of an object, with its keywords and its key as the receiver knows them."""
    return objects_pb2.Object(
        id=item.object_id,
        position=geometry_pb2.Position(lon=item.lon, lat=item.lat),
        point=geometry_pb2.Point(x_m=item.point.x_m, y_m=item.point.y_m),
        keywords=keywords,
        created_ms=item.created_ms,
        expiry_ms=item.expiry_ms,
        payload=item.payload,
        key=key,
        area=None if item.area is None else area_message(item.area),
    )
