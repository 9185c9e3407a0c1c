from nearcast.v1 import geometry_pb2 as _geometry_pb2
from nearcast.v1 import objects_pb2 as _objects_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Similarity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIMILARITY_UNSPECIFIED: _ClassVar[Similarity]
    SIMILARITY_JACCARD: _ClassVar[Similarity]
    SIMILARITY_DICE: _ClassVar[Similarity]
    SIMILARITY_COSINE: _ClassVar[Similarity]
    SIMILARITY_TFIDF: _ClassVar[Similarity]

class RegionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REGION_MODE_UNSPECIFIED: _ClassVar[RegionMode]
    REGION_MODE_ANCHORED: _ClassVar[RegionMode]
    REGION_MODE_ELLIPSE: _ClassVar[RegionMode]
    REGION_MODE_NEAREST: _ClassVar[RegionMode]
    REGION_MODE_STATIONARY: _ClassVar[RegionMode]

class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAUSE_UNSPECIFIED: _ClassVar[Cause]
    CAUSE_SUBSCRIBED: _ClassVar[Cause]
    CAUSE_REPORTED: _ClassVar[Cause]
    CAUSE_PUBLISHED: _ClassVar[Cause]
    CAUSE_RETRACTED: _ClassVar[Cause]
    CAUSE_REPLACED: _ClassVar[Cause]
    CAUSE_RESUMED: _ClassVar[Cause]
    CAUSE_REWEIGHED: _ClassVar[Cause]
    CAUSE_REFILLED: _ClassVar[Cause]

class DropReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DROP_REASON_UNSPECIFIED: _ClassVar[DropReason]
    DROP_REASON_OUT_OF_REACH: _ClassVar[DropReason]
    DROP_REASON_RETRACTED: _ClassVar[DropReason]
    DROP_REASON_REPLACED: _ClassVar[DropReason]
    DROP_REASON_OUT_OF_WINDOW: _ClassVar[DropReason]
SIMILARITY_UNSPECIFIED: Similarity
SIMILARITY_JACCARD: Similarity
SIMILARITY_DICE: Similarity
SIMILARITY_COSINE: Similarity
SIMILARITY_TFIDF: Similarity
REGION_MODE_UNSPECIFIED: RegionMode
REGION_MODE_ANCHORED: RegionMode
REGION_MODE_ELLIPSE: RegionMode
REGION_MODE_NEAREST: RegionMode
REGION_MODE_STATIONARY: RegionMode
CAUSE_UNSPECIFIED: Cause
CAUSE_SUBSCRIBED: Cause
CAUSE_REPORTED: Cause
CAUSE_PUBLISHED: Cause
CAUSE_RETRACTED: Cause
CAUSE_REPLACED: Cause
CAUSE_RESUMED: Cause
CAUSE_REWEIGHED: Cause
CAUSE_REFILLED: Cause
DROP_REASON_UNSPECIFIED: DropReason
DROP_REASON_OUT_OF_REACH: DropReason
DROP_REASON_RETRACTED: DropReason
DROP_REASON_REPLACED: DropReason
DROP_REASON_OUT_OF_WINDOW: DropReason

class TopK(_message.Message):
    __slots__ = ("keywords", "k", "alpha", "similarity", "distance_scale_m")
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_SCALE_M_FIELD_NUMBER: _ClassVar[int]
    keywords: _containers.RepeatedScalarFieldContainer[str]
    k: int
    alpha: float
    similarity: Similarity
    distance_scale_m: float
    def __init__(self, keywords: _Optional[_Iterable[str]] = ..., k: _Optional[int] = ..., alpha: _Optional[float] = ..., similarity: _Optional[_Union[Similarity, str]] = ..., distance_scale_m: _Optional[float] = ...) -> None: ...

class Clause(_message.Message):
    __slots__ = ("required", "excluded")
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    required: _containers.RepeatedScalarFieldContainer[str]
    excluded: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, required: _Optional[_Iterable[str]] = ..., excluded: _Optional[_Iterable[str]] = ...) -> None: ...

class Boolean(_message.Message):
    __slots__ = ("clauses", "circle", "rectangle", "polygon", "moving", "dwell_ms")
    CLAUSES_FIELD_NUMBER: _ClassVar[int]
    CIRCLE_FIELD_NUMBER: _ClassVar[int]
    RECTANGLE_FIELD_NUMBER: _ClassVar[int]
    POLYGON_FIELD_NUMBER: _ClassVar[int]
    MOVING_FIELD_NUMBER: _ClassVar[int]
    DWELL_MS_FIELD_NUMBER: _ClassVar[int]
    clauses: _containers.RepeatedCompositeFieldContainer[Clause]
    circle: _geometry_pb2.Circle
    rectangle: _geometry_pb2.Rectangle
    polygon: _geometry_pb2.Polygon
    moving: bool
    dwell_ms: int
    def __init__(self, clauses: _Optional[_Iterable[_Union[Clause, _Mapping]]] = ..., circle: _Optional[_Union[_geometry_pb2.Circle, _Mapping]] = ..., rectangle: _Optional[_Union[_geometry_pb2.Rectangle, _Mapping]] = ..., polygon: _Optional[_Union[_geometry_pb2.Polygon, _Mapping]] = ..., moving: _Optional[bool] = ..., dwell_ms: _Optional[int] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("duration_ms", "count")
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    duration_ms: int
    count: int
    def __init__(self, duration_ms: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class SubscriptionSpec(_message.Message):
    __slots__ = ("top_k", "boolean", "window", "region")
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    top_k: TopK
    boolean: Boolean
    window: Window
    region: RegionMode
    def __init__(self, top_k: _Optional[_Union[TopK, _Mapping]] = ..., boolean: _Optional[_Union[Boolean, _Mapping]] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., region: _Optional[_Union[RegionMode, str]] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("subscription_id", "spec", "name")
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    subscription_id: int
    spec: SubscriptionSpec
    name: str
    def __init__(self, subscription_id: _Optional[int] = ..., spec: _Optional[_Union[SubscriptionSpec, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class Reach(_message.Message):
    __slots__ = ("length_m", "object_id", "idf_generation")
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    IDF_GENERATION_FIELD_NUMBER: _ClassVar[int]
    length_m: float
    object_id: int
    idf_generation: int
    def __init__(self, length_m: _Optional[float] = ..., object_id: _Optional[int] = ..., idf_generation: _Optional[int] = ...) -> None: ...

class Slack(_message.Message):
    __slots__ = ("slack_m", "too_many")
    SLACK_M_FIELD_NUMBER: _ClassVar[int]
    TOO_MANY_FIELD_NUMBER: _ClassVar[int]
    slack_m: float
    too_many: bool
    def __init__(self, slack_m: _Optional[float] = ..., too_many: _Optional[bool] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("object", "r_m")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    R_M_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Object
    r_m: float
    def __init__(self, object: _Optional[_Union[_objects_pb2.Object, _Mapping]] = ..., r_m: _Optional[float] = ...) -> None: ...

class Drop(_message.Message):
    __slots__ = ("object_id", "reason")
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    object_id: int
    reason: DropReason
    def __init__(self, object_id: _Optional[int] = ..., reason: _Optional[_Union[DropReason, str]] = ...) -> None: ...

class Delta(_message.Message):
    __slots__ = ("version", "subscription_id", "anchor", "reach", "slack", "add", "drop", "cause", "snapshot", "report_sequence", "time_ms")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_FIELD_NUMBER: _ClassVar[int]
    REACH_FIELD_NUMBER: _ClassVar[int]
    SLACK_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    DROP_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    REPORT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    version: int
    subscription_id: int
    anchor: _geometry_pb2.Point
    reach: Reach
    slack: Slack
    add: _containers.RepeatedCompositeFieldContainer[Entry]
    drop: _containers.RepeatedCompositeFieldContainer[Drop]
    cause: Cause
    snapshot: bool
    report_sequence: int
    time_ms: int
    def __init__(self, version: _Optional[int] = ..., subscription_id: _Optional[int] = ..., anchor: _Optional[_Union[_geometry_pb2.Point, _Mapping]] = ..., reach: _Optional[_Union[Reach, _Mapping]] = ..., slack: _Optional[_Union[Slack, _Mapping]] = ..., add: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., drop: _Optional[_Iterable[_Union[Drop, _Mapping]]] = ..., cause: _Optional[_Union[Cause, str]] = ..., snapshot: _Optional[bool] = ..., report_sequence: _Optional[int] = ..., time_ms: _Optional[int] = ...) -> None: ...
