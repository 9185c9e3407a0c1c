from nearcast.v1 import geometry_pb2 as _geometry_pb2
from nearcast.v1 import objects_pb2 as _objects_pb2
from nearcast.v1 import streams_pb2 as _streams_pb2
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

class ClusterNodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLUSTER_NODE_STATE_UNSPECIFIED: _ClassVar[ClusterNodeState]
    CLUSTER_NODE_STATE_JOINING: _ClassVar[ClusterNodeState]
    CLUSTER_NODE_STATE_READY: _ClassVar[ClusterNodeState]
    CLUSTER_NODE_STATE_DRAINING: _ClassVar[ClusterNodeState]

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
CLUSTER_NODE_STATE_UNSPECIFIED: ClusterNodeState
CLUSTER_NODE_STATE_JOINING: ClusterNodeState
CLUSTER_NODE_STATE_READY: ClusterNodeState
CLUSTER_NODE_STATE_DRAINING: ClusterNodeState
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
    __slots__ = ("state", "time_ms", "gauges", "counters", "limits", "distributions", "callers", "nodes", "log_streams")
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
    NODES_FIELD_NUMBER: _ClassVar[int]
    LOG_STREAMS_FIELD_NUMBER: _ClassVar[int]
    state: ServerState
    time_ms: int
    gauges: _containers.ScalarMap[str, int]
    counters: _containers.ScalarMap[str, int]
    limits: _containers.ScalarMap[str, float]
    distributions: _containers.MessageMap[str, Distribution]
    callers: _containers.RepeatedCompositeFieldContainer[CallerUsage]
    nodes: _containers.RepeatedCompositeFieldContainer[ClusterNode]
    log_streams: _containers.RepeatedCompositeFieldContainer[LogStream]
    def __init__(self, state: _Optional[_Union[ServerState, str]] = ..., time_ms: _Optional[int] = ..., gauges: _Optional[_Mapping[str, int]] = ..., counters: _Optional[_Mapping[str, int]] = ..., limits: _Optional[_Mapping[str, float]] = ..., distributions: _Optional[_Mapping[str, Distribution]] = ..., callers: _Optional[_Iterable[_Union[CallerUsage, _Mapping]]] = ..., nodes: _Optional[_Iterable[_Union[ClusterNode, _Mapping]]] = ..., log_streams: _Optional[_Iterable[_Union[LogStream, _Mapping]]] = ...) -> None: ...

class ClusterNode(_message.Message):
    __slots__ = ("address", "state", "slot_count", "is_this", "lease_age_ms", "rules")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SLOT_COUNT_FIELD_NUMBER: _ClassVar[int]
    IS_THIS_FIELD_NUMBER: _ClassVar[int]
    LEASE_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    address: str
    state: ClusterNodeState
    slot_count: int
    is_this: bool
    lease_age_ms: int
    rules: int
    def __init__(self, address: _Optional[str] = ..., state: _Optional[_Union[ClusterNodeState, str]] = ..., slot_count: _Optional[int] = ..., is_this: _Optional[bool] = ..., lease_age_ms: _Optional[int] = ..., rules: _Optional[int] = ...) -> None: ...

class LogStream(_message.Message):
    __slots__ = ("name", "message_count", "byte_count", "servers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    BYTE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SERVERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    message_count: int
    byte_count: int
    servers: _containers.RepeatedCompositeFieldContainer[LogServer]
    def __init__(self, name: _Optional[str] = ..., message_count: _Optional[int] = ..., byte_count: _Optional[int] = ..., servers: _Optional[_Iterable[_Union[LogServer, _Mapping]]] = ...) -> None: ...

class LogServer(_message.Message):
    __slots__ = ("name", "is_leader", "is_current", "lag")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_LEADER_FIELD_NUMBER: _ClassVar[int]
    IS_CURRENT_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    name: str
    is_leader: bool
    is_current: bool
    lag: int
    def __init__(self, name: _Optional[str] = ..., is_leader: _Optional[bool] = ..., is_current: _Optional[bool] = ..., lag: _Optional[int] = ...) -> None: ...

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

class WatchRequest(_message.Message):
    __slots__ = ("view", "interval_ms", "devices_max", "objects_max", "grid_columns", "grid_rows", "keyword", "device_id", "polling_ms")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_MAX_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_MAX_FIELD_NUMBER: _ClassVar[int]
    GRID_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    GRID_ROWS_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    POLLING_MS_FIELD_NUMBER: _ClassVar[int]
    view: _geometry_pb2.Bounds
    interval_ms: int
    devices_max: int
    objects_max: int
    grid_columns: int
    grid_rows: int
    keyword: str
    device_id: str
    polling_ms: int
    def __init__(self, view: _Optional[_Union[_geometry_pb2.Bounds, _Mapping]] = ..., interval_ms: _Optional[int] = ..., devices_max: _Optional[int] = ..., objects_max: _Optional[int] = ..., grid_columns: _Optional[int] = ..., grid_rows: _Optional[int] = ..., keyword: _Optional[str] = ..., device_id: _Optional[str] = ..., polling_ms: _Optional[int] = ...) -> None: ...

class WatchFrame(_message.Message):
    __slots__ = ("time_ms", "sequence", "request_number", "reset", "devices", "objects", "rates", "latencies", "go_away", "frame", "more")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_NUMBER_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    LATENCIES_FIELD_NUMBER: _ClassVar[int]
    GO_AWAY_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    sequence: int
    request_number: int
    reset: bool
    devices: WatchedDevices
    objects: WatchedObjects
    rates: WatchedRates
    latencies: _containers.RepeatedCompositeFieldContainer[WatchedLatency]
    go_away: _streams_pb2.GoAway
    frame: _geometry_pb2.Frame
    more: bool
    def __init__(self, time_ms: _Optional[int] = ..., sequence: _Optional[int] = ..., request_number: _Optional[int] = ..., reset: _Optional[bool] = ..., devices: _Optional[_Union[WatchedDevices, _Mapping]] = ..., objects: _Optional[_Union[WatchedObjects, _Mapping]] = ..., rates: _Optional[_Union[WatchedRates, _Mapping]] = ..., latencies: _Optional[_Iterable[_Union[WatchedLatency, _Mapping]]] = ..., go_away: _Optional[_Union[_streams_pb2.GoAway, _Mapping]] = ..., frame: _Optional[_Union[_geometry_pb2.Frame, _Mapping]] = ..., more: _Optional[bool] = ...) -> None: ...

class WatchedDevices(_message.Message):
    __slots__ = ("view_count", "placed_count", "attached_count", "thinned", "numbers", "ids", "lon_e7", "lat_e7", "margin_m", "age_ms", "states", "removed_numbers", "density")
    VIEW_COUNT_FIELD_NUMBER: _ClassVar[int]
    PLACED_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    THINNED_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    LON_E7_FIELD_NUMBER: _ClassVar[int]
    LAT_E7_FIELD_NUMBER: _ClassVar[int]
    MARGIN_M_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    REMOVED_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    DENSITY_FIELD_NUMBER: _ClassVar[int]
    view_count: int
    placed_count: int
    attached_count: int
    thinned: bool
    numbers: _containers.RepeatedScalarFieldContainer[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    lon_e7: _containers.RepeatedScalarFieldContainer[int]
    lat_e7: _containers.RepeatedScalarFieldContainer[int]
    margin_m: _containers.RepeatedScalarFieldContainer[float]
    age_ms: _containers.RepeatedScalarFieldContainer[int]
    states: _containers.RepeatedScalarFieldContainer[DeviceState]
    removed_numbers: _containers.RepeatedScalarFieldContainer[int]
    density: WatchedDensity
    def __init__(self, view_count: _Optional[int] = ..., placed_count: _Optional[int] = ..., attached_count: _Optional[int] = ..., thinned: _Optional[bool] = ..., numbers: _Optional[_Iterable[int]] = ..., ids: _Optional[_Iterable[str]] = ..., lon_e7: _Optional[_Iterable[int]] = ..., lat_e7: _Optional[_Iterable[int]] = ..., margin_m: _Optional[_Iterable[float]] = ..., age_ms: _Optional[_Iterable[int]] = ..., states: _Optional[_Iterable[_Union[DeviceState, str]]] = ..., removed_numbers: _Optional[_Iterable[int]] = ..., density: _Optional[_Union[WatchedDensity, _Mapping]] = ...) -> None: ...

class WatchedObjects(_message.Message):
    __slots__ = ("view_count", "count", "thinned", "ids", "lon_e7", "lat_e7", "age_ms", "left_ms", "removed_ids", "density")
    VIEW_COUNT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    THINNED_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    LON_E7_FIELD_NUMBER: _ClassVar[int]
    LAT_E7_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_IDS_FIELD_NUMBER: _ClassVar[int]
    DENSITY_FIELD_NUMBER: _ClassVar[int]
    view_count: int
    count: int
    thinned: bool
    ids: _containers.RepeatedScalarFieldContainer[int]
    lon_e7: _containers.RepeatedScalarFieldContainer[int]
    lat_e7: _containers.RepeatedScalarFieldContainer[int]
    age_ms: _containers.RepeatedScalarFieldContainer[int]
    left_ms: _containers.RepeatedScalarFieldContainer[int]
    removed_ids: _containers.RepeatedScalarFieldContainer[int]
    density: WatchedDensity
    def __init__(self, view_count: _Optional[int] = ..., count: _Optional[int] = ..., thinned: _Optional[bool] = ..., ids: _Optional[_Iterable[int]] = ..., lon_e7: _Optional[_Iterable[int]] = ..., lat_e7: _Optional[_Iterable[int]] = ..., age_ms: _Optional[_Iterable[int]] = ..., left_ms: _Optional[_Iterable[int]] = ..., removed_ids: _Optional[_Iterable[int]] = ..., density: _Optional[_Union[WatchedDensity, _Mapping]] = ...) -> None: ...

class WatchedDensity(_message.Message):
    __slots__ = ("columns", "rows", "counts")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    columns: int
    rows: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, columns: _Optional[int] = ..., rows: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class WatchedRates(_message.Message):
    __slots__ = ("reports", "objects_published", "objects_gone", "deltas", "polling_reports", "reports_total", "polling_reports_total")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_GONE_FIELD_NUMBER: _ClassVar[int]
    DELTAS_FIELD_NUMBER: _ClassVar[int]
    POLLING_REPORTS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    POLLING_REPORTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    reports: float
    objects_published: float
    objects_gone: float
    deltas: float
    polling_reports: float
    reports_total: int
    polling_reports_total: float
    def __init__(self, reports: _Optional[float] = ..., objects_published: _Optional[float] = ..., objects_gone: _Optional[float] = ..., deltas: _Optional[float] = ..., polling_reports: _Optional[float] = ..., reports_total: _Optional[int] = ..., polling_reports_total: _Optional[float] = ...) -> None: ...

class WatchedLatency(_message.Message):
    __slots__ = ("name", "count", "p50_ms", "p99_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    P50_MS_FIELD_NUMBER: _ClassVar[int]
    P99_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    p50_ms: float
    p99_ms: float
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ..., p50_ms: _Optional[float] = ..., p99_ms: _Optional[float] = ...) -> None: ...
