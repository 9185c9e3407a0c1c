from nearcast.v1 import geometry_pb2 as _geometry_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ObjectArea(_message.Message):
    __slots__ = ("rectangle", "polygon")
    RECTANGLE_FIELD_NUMBER: _ClassVar[int]
    POLYGON_FIELD_NUMBER: _ClassVar[int]
    rectangle: _geometry_pb2.Bounds
    polygon: _geometry_pb2.Ring
    def __init__(self, rectangle: _Optional[_Union[_geometry_pb2.Bounds, _Mapping]] = ..., polygon: _Optional[_Union[_geometry_pb2.Ring, _Mapping]] = ...) -> None: ...

class NewObject(_message.Message):
    __slots__ = ("position", "keywords", "ttl_ms", "payload", "key", "area")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AREA_FIELD_NUMBER: _ClassVar[int]
    position: _geometry_pb2.Position
    keywords: _containers.RepeatedScalarFieldContainer[str]
    ttl_ms: int
    payload: bytes
    key: str
    area: ObjectArea
    def __init__(self, position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ..., keywords: _Optional[_Iterable[str]] = ..., ttl_ms: _Optional[int] = ..., payload: _Optional[bytes] = ..., key: _Optional[str] = ..., area: _Optional[_Union[ObjectArea, _Mapping]] = ...) -> None: ...

class Object(_message.Message):
    __slots__ = ("id", "position", "point", "keywords", "created_ms", "expiry_ms", "payload", "key", "area")
    ID_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_MS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AREA_FIELD_NUMBER: _ClassVar[int]
    id: int
    position: _geometry_pb2.Position
    point: _geometry_pb2.Point
    keywords: _containers.RepeatedScalarFieldContainer[str]
    created_ms: int
    expiry_ms: int
    payload: bytes
    key: str
    area: ObjectArea
    def __init__(self, id: _Optional[int] = ..., position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ..., point: _Optional[_Union[_geometry_pb2.Point, _Mapping]] = ..., keywords: _Optional[_Iterable[str]] = ..., created_ms: _Optional[int] = ..., expiry_ms: _Optional[int] = ..., payload: _Optional[bytes] = ..., key: _Optional[str] = ..., area: _Optional[_Union[ObjectArea, _Mapping]] = ...) -> None: ...
