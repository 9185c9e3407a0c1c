from nearcast.v1 import geometry_pb2 as _geometry_pb2
from nearcast.v1 import objects_pb2 as _objects_pb2
from nearcast.v1 import subscriptions_pb2 as _subscriptions_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ServerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SERVER_STATE_UNSPECIFIED: _ClassVar[ServerState]
    SERVER_STATE_RECOVERING: _ClassVar[ServerState]
    SERVER_STATE_SERVING: _ClassVar[ServerState]
    SERVER_STATE_DRAINING: _ClassVar[ServerState]

class DeviceState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_STATE_UNSPECIFIED: _ClassVar[DeviceState]
    DEVICE_STATE_IN_SYNC: _ClassVar[DeviceState]
    DEVICE_STATE_CATCHING_UP: _ClassVar[DeviceState]
    DEVICE_STATE_DETACHED: _ClassVar[DeviceState]
    DEVICE_STATE_PARKED: _ClassVar[DeviceState]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_HELD: _ClassVar[Verdict]
    VERDICT_UNKNOWN_OBJECT: _ClassVar[Verdict]
    VERDICT_GONE: _ClassVar[Verdict]
    VERDICT_PARKED: _ClassVar[Verdict]
    VERDICT_NO_COMMON_KEYWORD: _ClassVar[Verdict]
    VERDICT_NO_CLAUSE: _ClassVar[Verdict]
    VERDICT_OUT_OF_WINDOW: _ClassVar[Verdict]
    VERDICT_PENDING: _ClassVar[Verdict]
    VERDICT_BEYOND_REACH: _ClassVar[Verdict]
    VERDICT_DOMINATED: _ClassVar[Verdict]
    VERDICT_NOT_AMONG_K: _ClassVar[Verdict]
    VERDICT_OUT_OF_RANGE: _ClassVar[Verdict]
    VERDICT_TOO_MANY: _ClassVar[Verdict]
SERVER_STATE_UNSPECIFIED: ServerState
SERVER_STATE_RECOVERING: ServerState
SERVER_STATE_SERVING: ServerState
SERVER_STATE_DRAINING: ServerState
DEVICE_STATE_UNSPECIFIED: DeviceState
DEVICE_STATE_IN_SYNC: DeviceState
DEVICE_STATE_CATCHING_UP: DeviceState
DEVICE_STATE_DETACHED: DeviceState
DEVICE_STATE_PARKED: DeviceState
VERDICT_UNSPECIFIED: Verdict
VERDICT_HELD: Verdict
VERDICT_UNKNOWN_OBJECT: Verdict
VERDICT_GONE: Verdict
VERDICT_PARKED: Verdict
VERDICT_NO_COMMON_KEYWORD: Verdict
VERDICT_NO_CLAUSE: Verdict
VERDICT_OUT_OF_WINDOW: Verdict
VERDICT_PENDING: Verdict
VERDICT_BEYOND_REACH: Verdict
VERDICT_DOMINATED: Verdict
VERDICT_NOT_AMONG_K: Verdict
VERDICT_OUT_OF_RANGE: Verdict
VERDICT_TOO_MANY: Verdict

class SetIdfRequest(_message.Message):
    __slots__ = ("weights", "unknown_weight")
    class WeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    weights: _containers.ScalarMap[str, float]
    unknown_weight: float
    def __init__(self, weights: _Optional[_Mapping[str, float]] = ..., unknown_weight: _Optional[float] = ...) -> None: ...

class SetIdfResponse(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class SyncRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SyncResponse(_message.Message):
    __slots__ = ("time_ms",)
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    def __init__(self, time_ms: _Optional[int] = ...) -> None: ...

class AdvanceClockRequest(_message.Message):
    __slots__ = ("time_ms",)
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    def __init__(self, time_ms: _Optional[int] = ...) -> None: ...

class AdvanceClockResponse(_message.Message):
    __slots__ = ("time_ms",)
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    def __init__(self, time_ms: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("state", "time_ms", "gauges", "counters", "limits", "distributions", "callers")
    class GaugesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class CountersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class LimitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class DistributionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Distribution
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Distribution, _Mapping]] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    GAUGES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    CALLERS_FIELD_NUMBER: _ClassVar[int]
    state: ServerState
    time_ms: int
    gauges: _containers.ScalarMap[str, int]
    counters: _containers.ScalarMap[str, int]
    limits: _containers.ScalarMap[str, float]
    distributions: _containers.MessageMap[str, Distribution]
    callers: _containers.RepeatedCompositeFieldContainer[CallerUsage]
    def __init__(self, state: _Optional[_Union[ServerState, str]] = ..., time_ms: _Optional[int] = ..., gauges: _Optional[_Mapping[str, int]] = ..., counters: _Optional[_Mapping[str, int]] = ..., limits: _Optional[_Mapping[str, float]] = ..., distributions: _Optional[_Mapping[str, Distribution]] = ..., callers: _Optional[_Iterable[_Union[CallerUsage, _Mapping]]] = ...) -> None: ...

class CallerUsage(_message.Message):
    __slots__ = ("tenant", "id", "time_share", "time_us", "stream_count", "call_count", "unread_bytes")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_SHARE_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    STREAM_COUNT_FIELD_NUMBER: _ClassVar[int]
    CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    UNREAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    id: str
    time_share: float
    time_us: int
    stream_count: int
    call_count: int
    unread_bytes: int
    def __init__(self, tenant: _Optional[str] = ..., id: _Optional[str] = ..., time_share: _Optional[float] = ..., time_us: _Optional[int] = ..., stream_count: _Optional[int] = ..., call_count: _Optional[int] = ..., unread_bytes: _Optional[int] = ...) -> None: ...

class Distribution(_message.Message):
    __slots__ = ("bounds", "counts", "total")
    BOUNDS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    bounds: _containers.RepeatedScalarFieldContainer[float]
    counts: _containers.RepeatedScalarFieldContainer[int]
    total: int
    def __init__(self, bounds: _Optional[_Iterable[float]] = ..., counts: _Optional[_Iterable[int]] = ..., total: _Optional[int] = ...) -> None: ...

class InspectRequest(_message.Message):
    __slots__ = ("device_id", "subscription", "object_id", "object_key")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    subscription: SubscriptionSubject
    object_id: int
    object_key: str
    def __init__(self, device_id: _Optional[str] = ..., subscription: _Optional[_Union[SubscriptionSubject, _Mapping]] = ..., object_id: _Optional[int] = ..., object_key: _Optional[str] = ...) -> None: ...

class SubscriptionSubject(_message.Message):
    __slots__ = ("device_id", "subscription_id", "object_id", "object_key")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    OBJECT_KEY_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    subscription_id: int
    object_id: int
    object_key: str
    def __init__(self, device_id: _Optional[str] = ..., subscription_id: _Optional[int] = ..., object_id: _Optional[int] = ..., object_key: _Optional[str] = ...) -> None: ...

class InspectResponse(_message.Message):
    __slots__ = ("time_ms", "device", "subscription", "object")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    device: InspectedDevice
    subscription: InspectedSubscription
    object: InspectedObject
    def __init__(self, time_ms: _Optional[int] = ..., device: _Optional[_Union[InspectedDevice, _Mapping]] = ..., subscription: _Optional[_Union[InspectedSubscription, _Mapping]] = ..., object: _Optional[_Union[InspectedObject, _Mapping]] = ...) -> None: ...

class InspectedDevice(_message.Message):
    __slots__ = ("device_id", "state", "version", "kept_count", "waiting_count", "report_sequence", "silent_ms", "lease_ms", "subscriptions")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KEPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    WAITING_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPORT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    state: DeviceState
    version: int
    kept_count: int
    waiting_count: int
    report_sequence: int
    silent_ms: int
    lease_ms: int
    subscriptions: _containers.RepeatedCompositeFieldContainer[InspectedSubscription]
    def __init__(self, device_id: _Optional[str] = ..., state: _Optional[_Union[DeviceState, str]] = ..., version: _Optional[int] = ..., kept_count: _Optional[int] = ..., waiting_count: _Optional[int] = ..., report_sequence: _Optional[int] = ..., silent_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., subscriptions: _Optional[_Iterable[_Union[InspectedSubscription, _Mapping]]] = ...) -> None: ...

class InspectedSubscription(_message.Message):
    __slots__ = ("device_id", "subscription_id", "spec", "awake", "pending", "anchor", "reach", "slack", "held", "judgement", "name", "anchor_position")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    AWAKE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_FIELD_NUMBER: _ClassVar[int]
    REACH_FIELD_NUMBER: _ClassVar[int]
    SLACK_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    JUDGEMENT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_POSITION_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    subscription_id: int
    spec: _subscriptions_pb2.SubscriptionSpec
    awake: bool
    pending: bool
    anchor: _geometry_pb2.Point
    reach: _subscriptions_pb2.Reach
    slack: _subscriptions_pb2.Slack
    held: _containers.RepeatedCompositeFieldContainer[HeldObject]
    judgement: Judgement
    name: str
    anchor_position: _geometry_pb2.Position
    def __init__(self, device_id: _Optional[str] = ..., subscription_id: _Optional[int] = ..., spec: _Optional[_Union[_subscriptions_pb2.SubscriptionSpec, _Mapping]] = ..., awake: _Optional[bool] = ..., pending: _Optional[bool] = ..., anchor: _Optional[_Union[_geometry_pb2.Point, _Mapping]] = ..., reach: _Optional[_Union[_subscriptions_pb2.Reach, _Mapping]] = ..., slack: _Optional[_Union[_subscriptions_pb2.Slack, _Mapping]] = ..., held: _Optional[_Iterable[_Union[HeldObject, _Mapping]]] = ..., judgement: _Optional[_Union[Judgement, _Mapping]] = ..., name: _Optional[str] = ..., anchor_position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ...) -> None: ...

class HeldObject(_message.Message):
    __slots__ = ("object_id", "rank", "length_m", "r_m", "key", "keywords", "position")
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    R_M_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    object_id: int
    rank: int
    length_m: float
    r_m: float
    key: str
    keywords: _containers.RepeatedScalarFieldContainer[str]
    position: _geometry_pb2.Position
    def __init__(self, object_id: _Optional[int] = ..., rank: _Optional[int] = ..., length_m: _Optional[float] = ..., r_m: _Optional[float] = ..., key: _Optional[str] = ..., keywords: _Optional[_Iterable[str]] = ..., position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ...) -> None: ...

class Judgement(_message.Message):
    __slots__ = ("object_id", "verdict", "rank", "length_m", "r_m")
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    R_M_FIELD_NUMBER: _ClassVar[int]
    object_id: int
    verdict: Verdict
    rank: int
    length_m: float
    r_m: float
    def __init__(self, object_id: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, str]] = ..., rank: _Optional[int] = ..., length_m: _Optional[float] = ..., r_m: _Optional[float] = ...) -> None: ...

class InspectedObject(_message.Message):
    __slots__ = ("object", "payload_bytes", "holder_count", "holders")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOLDER_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    object: _objects_pb2.Object
    payload_bytes: int
    holder_count: int
    holders: _containers.RepeatedCompositeFieldContainer[Holder]
    def __init__(self, object: _Optional[_Union[_objects_pb2.Object, _Mapping]] = ..., payload_bytes: _Optional[int] = ..., holder_count: _Optional[int] = ..., holders: _Optional[_Iterable[_Union[Holder, _Mapping]]] = ...) -> None: ...

class Holder(_message.Message):
    __slots__ = ("device_id", "subscription_id")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    subscription_id: int
    def __init__(self, device_id: _Optional[str] = ..., subscription_id: _Optional[int] = ...) -> None: ...
