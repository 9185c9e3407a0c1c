from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Position(_message.Message):
    __slots__ = ("lon", "lat")
    LON_FIELD_NUMBER: _ClassVar[int]
    LAT_FIELD_NUMBER: _ClassVar[int]
    lon: float
    lat: float
    def __init__(self, lon: _Optional[float] = ..., lat: _Optional[float] = ...) -> None: ...

class Point(_message.Message):
    __slots__ = ("x_m", "y_m")
    X_M_FIELD_NUMBER: _ClassVar[int]
    Y_M_FIELD_NUMBER: _ClassVar[int]
    x_m: float
    y_m: float
    def __init__(self, x_m: _Optional[float] = ..., y_m: _Optional[float] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("lon_min", "lat_min", "lon_max", "lat_max", "lon0_deg", "lat0_deg", "x_m_per_deg", "y_m_per_deg", "maxdist_m")
    LON_MIN_FIELD_NUMBER: _ClassVar[int]
    LAT_MIN_FIELD_NUMBER: _ClassVar[int]
    LON_MAX_FIELD_NUMBER: _ClassVar[int]
    LAT_MAX_FIELD_NUMBER: _ClassVar[int]
    LON0_DEG_FIELD_NUMBER: _ClassVar[int]
    LAT0_DEG_FIELD_NUMBER: _ClassVar[int]
    X_M_PER_DEG_FIELD_NUMBER: _ClassVar[int]
    Y_M_PER_DEG_FIELD_NUMBER: _ClassVar[int]
    MAXDIST_M_FIELD_NUMBER: _ClassVar[int]
    lon_min: float
    lat_min: float
    lon_max: float
    lat_max: float
    lon0_deg: float
    lat0_deg: float
    x_m_per_deg: float
    y_m_per_deg: float
    maxdist_m: float
    def __init__(self, lon_min: _Optional[float] = ..., lat_min: _Optional[float] = ..., lon_max: _Optional[float] = ..., lat_max: _Optional[float] = ..., lon0_deg: _Optional[float] = ..., lat0_deg: _Optional[float] = ..., x_m_per_deg: _Optional[float] = ..., y_m_per_deg: _Optional[float] = ..., maxdist_m: _Optional[float] = ...) -> None: ...

class Bounds(_message.Message):
    __slots__ = ("lon_min", "lat_min", "lon_max", "lat_max")
    LON_MIN_FIELD_NUMBER: _ClassVar[int]
    LAT_MIN_FIELD_NUMBER: _ClassVar[int]
    LON_MAX_FIELD_NUMBER: _ClassVar[int]
    LAT_MAX_FIELD_NUMBER: _ClassVar[int]
    lon_min: float
    lat_min: float
    lon_max: float
    lat_max: float
    def __init__(self, lon_min: _Optional[float] = ..., lat_min: _Optional[float] = ..., lon_max: _Optional[float] = ..., lat_max: _Optional[float] = ...) -> None: ...

class Ring(_message.Message):
    __slots__ = ("vertices",)
    VERTICES_FIELD_NUMBER: _ClassVar[int]
    vertices: _containers.RepeatedCompositeFieldContainer[Position]
    def __init__(self, vertices: _Optional[_Iterable[_Union[Position, _Mapping]]] = ...) -> None: ...

class Polygon(_message.Message):
    __slots__ = ("outer", "holes")
    OUTER_FIELD_NUMBER: _ClassVar[int]
    HOLES_FIELD_NUMBER: _ClassVar[int]
    outer: Ring
    holes: _containers.RepeatedCompositeFieldContainer[Ring]
    def __init__(self, outer: _Optional[_Union[Ring, _Mapping]] = ..., holes: _Optional[_Iterable[_Union[Ring, _Mapping]]] = ...) -> None: ...

class Circle(_message.Message):
    __slots__ = ("center", "radius_m")
    CENTER_FIELD_NUMBER: _ClassVar[int]
    RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    center: Position
    radius_m: float
    def __init__(self, center: _Optional[_Union[Position, _Mapping]] = ..., radius_m: _Optional[float] = ...) -> None: ...

class Rectangle(_message.Message):
    __slots__ = ("bounds", "width_m", "height_m")
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    WIDTH_M_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_M_FIELD_NUMBER: _ClassVar[int]
    bounds: Bounds
    width_m: float
    height_m: float
    def __init__(self, bounds: _Optional[_Union[Bounds, _Mapping]] = ..., width_m: _Optional[float] = ..., height_m: _Optional[float] = ...) -> None: ...
