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

class RegionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REGION_MODE_UNSPECIFIED: _ClassVar[RegionMode]
    REGION_MODE_ANCHORED: _ClassVar[RegionMode]
    REGION_MODE_ELLIPSE: _ClassVar[RegionMode]

class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAUSE_UNSPECIFIED: _ClassVar[Cause]
    CAUSE_SUBSCRIBED: _ClassVar[Cause]
    CAUSE_REPORTED: _ClassVar[Cause]
    CAUSE_PUBLISHED: _ClassVar[Cause]
    CAUSE_RETRACTED: _ClassVar[Cause]
    CAUSE_REPLACED: _ClassVar[Cause]
    CAUSE_RESUMED: _ClassVar[Cause]

class DropReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DROP_REASON_UNSPECIFIED: _ClassVar[DropReason]
    DROP_REASON_OUT_OF_REACH: _ClassVar[DropReason]
    DROP_REASON_RETRACTED: _ClassVar[DropReason]
    DROP_REASON_REPLACED: _ClassVar[DropReason]
SIMILARITY_UNSPECIFIED: Similarity
SIMILARITY_JACCARD: Similarity
SIMILARITY_DICE: Similarity
SIMILARITY_COSINE: Similarity
REGION_MODE_UNSPECIFIED: RegionMode
REGION_MODE_ANCHORED: RegionMode
REGION_MODE_ELLIPSE: RegionMode
CAUSE_UNSPECIFIED: Cause
CAUSE_SUBSCRIBED: Cause
CAUSE_REPORTED: Cause
CAUSE_PUBLISHED: Cause
CAUSE_RETRACTED: Cause
CAUSE_REPLACED: Cause
CAUSE_RESUMED: Cause
DROP_REASON_UNSPECIFIED: DropReason
DROP_REASON_OUT_OF_REACH: DropReason
DROP_REASON_RETRACTED: DropReason
DROP_REASON_REPLACED: DropReason

class TopK(_message.Message):
    __slots__ = ("keywords", "k", "alpha", "similarity")
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    K_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    keywords: _containers.RepeatedScalarFieldContainer[str]
    k: int
    alpha: float
    similarity: Similarity
    def __init__(self, keywords: _Optional[_Iterable[str]] = ..., k: _Optional[int] = ..., alpha: _Optional[float] = ..., similarity: _Optional[_Union[Similarity, str]] = ...) -> None: ...

class SubscriptionSpec(_message.Message):
    __slots__ = ("top_k", "region")
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    top_k: TopK
    region: RegionMode
    def __init__(self, top_k: _Optional[_Union[TopK, _Mapping]] = ..., region: _Optional[_Union[RegionMode, str]] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("subscription_id", "spec")
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    subscription_id: int
    spec: SubscriptionSpec
    def __init__(self, subscription_id: _Optional[int] = ..., spec: _Optional[_Union[SubscriptionSpec, _Mapping]] = ...) -> None: ...

class Reach(_message.Message):
    __slots__ = ("length_m", "object_id")
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    length_m: float
    object_id: int
    def __init__(self, length_m: _Optional[float] = ..., object_id: _Optional[int] = ...) -> None: ...

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
    __slots__ = ("version", "subscription_id", "anchor", "reach", "add", "drop", "cause", "snapshot", "report_sequence", "time_ms")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_FIELD_NUMBER: _ClassVar[int]
    REACH_FIELD_NUMBER: _ClassVar[int]
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
    add: _containers.RepeatedCompositeFieldContainer[Entry]
    drop: _containers.RepeatedCompositeFieldContainer[Drop]
    cause: Cause
    snapshot: bool
    report_sequence: int
    time_ms: int
    def __init__(self, version: _Optional[int] = ..., subscription_id: _Optional[int] = ..., anchor: _Optional[_Union[_geometry_pb2.Point, _Mapping]] = ..., reach: _Optional[_Union[Reach, _Mapping]] = ..., add: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., drop: _Optional[_Iterable[_Union[Drop, _Mapping]]] = ..., cause: _Optional[_Union[Cause, str]] = ..., snapshot: _Optional[bool] = ..., report_sequence: _Optional[int] = ..., time_ms: _Optional[int] = ...) -> None: ...
