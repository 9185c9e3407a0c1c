from nearcast.v1 import errors_pb2 as _errors_pb2
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

class EndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    END_REASON_UNSPECIFIED: _ClassVar[EndReason]
    END_REASON_UNSUBSCRIBED: _ClassVar[EndReason]
END_REASON_UNSPECIFIED: EndReason
END_REASON_UNSUBSCRIBED: EndReason

class Hello(_message.Message):
    __slots__ = ("device_id", "instance_nonce", "version", "position", "margin_m", "epoch", "take_over")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_NONCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    MARGIN_M_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TAKE_OVER_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    instance_nonce: bytes
    version: int
    position: _geometry_pb2.Position
    margin_m: float
    epoch: int
    take_over: bool
    def __init__(self, device_id: _Optional[str] = ..., instance_nonce: _Optional[bytes] = ..., version: _Optional[int] = ..., position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ..., margin_m: _Optional[float] = ..., epoch: _Optional[int] = ..., take_over: _Optional[bool] = ...) -> None: ...

class Subscribe(_message.Message):
    __slots__ = ("subscription_id", "spec", "position", "margin_m", "name")
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    MARGIN_M_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    subscription_id: int
    spec: _subscriptions_pb2.SubscriptionSpec
    position: _geometry_pb2.Position
    margin_m: float
    name: str
    def __init__(self, subscription_id: _Optional[int] = ..., spec: _Optional[_Union[_subscriptions_pb2.SubscriptionSpec, _Mapping]] = ..., position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ..., margin_m: _Optional[float] = ..., name: _Optional[str] = ...) -> None: ...

class Unsubscribe(_message.Message):
    __slots__ = ("subscription_id",)
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    subscription_id: int
    def __init__(self, subscription_id: _Optional[int] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("sequence", "position", "subscription_ids", "heading_deg", "speed_mps", "margin_m", "version")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_IDS_FIELD_NUMBER: _ClassVar[int]
    HEADING_DEG_FIELD_NUMBER: _ClassVar[int]
    SPEED_MPS_FIELD_NUMBER: _ClassVar[int]
    MARGIN_M_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    position: _geometry_pb2.Position
    subscription_ids: _containers.RepeatedScalarFieldContainer[int]
    heading_deg: float
    speed_mps: float
    margin_m: float
    version: int
    def __init__(self, sequence: _Optional[int] = ..., position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ..., subscription_ids: _Optional[_Iterable[int]] = ..., heading_deg: _Optional[float] = ..., speed_mps: _Optional[float] = ..., margin_m: _Optional[float] = ..., version: _Optional[int] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("number", "version")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    number: int
    version: int
    def __init__(self, number: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("hello", "subscribe", "unsubscribe", "report", "ack", "ping")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    subscribe: Subscribe
    unsubscribe: Unsubscribe
    report: Report
    ack: Ack
    ping: Ping
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., subscribe: _Optional[_Union[Subscribe, _Mapping]] = ..., unsubscribe: _Optional[_Union[Unsubscribe, _Mapping]] = ..., report: _Optional[_Union[Report, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("object_keywords_max", "subscription_keywords_max", "keyword_length_max", "k_max", "alpha_min", "alpha_max", "ttl_ms_max", "payload_bytes_max", "objects_per_request_max", "subscriptions_per_device_max", "devices_per_fleet_max", "name_length_max", "margin_m_max", "clauses_max", "clause_keywords_max", "range_m_max", "matches_max", "vertices_max", "area_vertices_max", "window_ms_max", "window_count_max", "windows_max", "distance_scale_m_max")
    OBJECT_KEYWORDS_MAX_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_KEYWORDS_MAX_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_LENGTH_MAX_FIELD_NUMBER: _ClassVar[int]
    K_MAX_FIELD_NUMBER: _ClassVar[int]
    ALPHA_MIN_FIELD_NUMBER: _ClassVar[int]
    ALPHA_MAX_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_PER_REQUEST_MAX_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_PER_DEVICE_MAX_FIELD_NUMBER: _ClassVar[int]
    DEVICES_PER_FLEET_MAX_FIELD_NUMBER: _ClassVar[int]
    NAME_LENGTH_MAX_FIELD_NUMBER: _ClassVar[int]
    MARGIN_M_MAX_FIELD_NUMBER: _ClassVar[int]
    CLAUSES_MAX_FIELD_NUMBER: _ClassVar[int]
    CLAUSE_KEYWORDS_MAX_FIELD_NUMBER: _ClassVar[int]
    RANGE_M_MAX_FIELD_NUMBER: _ClassVar[int]
    MATCHES_MAX_FIELD_NUMBER: _ClassVar[int]
    VERTICES_MAX_FIELD_NUMBER: _ClassVar[int]
    AREA_VERTICES_MAX_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_MAX_FIELD_NUMBER: _ClassVar[int]
    WINDOW_COUNT_MAX_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_MAX_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_SCALE_M_MAX_FIELD_NUMBER: _ClassVar[int]
    object_keywords_max: int
    subscription_keywords_max: int
    keyword_length_max: int
    k_max: int
    alpha_min: float
    alpha_max: float
    ttl_ms_max: int
    payload_bytes_max: int
    objects_per_request_max: int
    subscriptions_per_device_max: int
    devices_per_fleet_max: int
    name_length_max: int
    margin_m_max: float
    clauses_max: int
    clause_keywords_max: int
    range_m_max: float
    matches_max: int
    vertices_max: int
    area_vertices_max: int
    window_ms_max: int
    window_count_max: int
    windows_max: int
    distance_scale_m_max: float
    def __init__(self, object_keywords_max: _Optional[int] = ..., subscription_keywords_max: _Optional[int] = ..., keyword_length_max: _Optional[int] = ..., k_max: _Optional[int] = ..., alpha_min: _Optional[float] = ..., alpha_max: _Optional[float] = ..., ttl_ms_max: _Optional[int] = ..., payload_bytes_max: _Optional[int] = ..., objects_per_request_max: _Optional[int] = ..., subscriptions_per_device_max: _Optional[int] = ..., devices_per_fleet_max: _Optional[int] = ..., name_length_max: _Optional[int] = ..., margin_m_max: _Optional[float] = ..., clauses_max: _Optional[int] = ..., clause_keywords_max: _Optional[int] = ..., range_m_max: _Optional[float] = ..., matches_max: _Optional[int] = ..., vertices_max: _Optional[int] = ..., area_vertices_max: _Optional[int] = ..., window_ms_max: _Optional[int] = ..., window_count_max: _Optional[int] = ..., windows_max: _Optional[int] = ..., distance_scale_m_max: _Optional[float] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("frame", "time_ms", "virtual_time", "limits", "subscriptions", "version", "resumed", "lease_ms", "epoch", "lag_offset")
    FRAME_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LAG_OFFSET_FIELD_NUMBER: _ClassVar[int]
    frame: _geometry_pb2.Frame
    time_ms: int
    virtual_time: bool
    limits: Limits
    subscriptions: _containers.RepeatedCompositeFieldContainer[_subscriptions_pb2.Subscription]
    version: int
    resumed: bool
    lease_ms: int
    epoch: int
    lag_offset: int
    def __init__(self, frame: _Optional[_Union[_geometry_pb2.Frame, _Mapping]] = ..., time_ms: _Optional[int] = ..., virtual_time: _Optional[bool] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., subscriptions: _Optional[_Iterable[_Union[_subscriptions_pb2.Subscription, _Mapping]]] = ..., version: _Optional[int] = ..., resumed: _Optional[bool] = ..., lease_ms: _Optional[int] = ..., epoch: _Optional[int] = ..., lag_offset: _Optional[int] = ...) -> None: ...

class Lag(_message.Message):
    __slots__ = ("offset",)
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    offset: int
    def __init__(self, offset: _Optional[int] = ...) -> None: ...

class Unsubscribed(_message.Message):
    __slots__ = ("subscription_id", "reason")
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    subscription_id: int
    reason: EndReason
    def __init__(self, subscription_id: _Optional[int] = ..., reason: _Optional[_Union[EndReason, str]] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class Locate(_message.Message):
    __slots__ = ("subscription_ids",)
    SUBSCRIPTION_IDS_FIELD_NUMBER: _ClassVar[int]
    subscription_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, subscription_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("number", "command", "error")
    class Command(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        COMMAND_UNSPECIFIED: _ClassVar[Rejection.Command]
        COMMAND_HELLO: _ClassVar[Rejection.Command]
        COMMAND_SUBSCRIBE: _ClassVar[Rejection.Command]
        COMMAND_UNSUBSCRIBE: _ClassVar[Rejection.Command]
        COMMAND_REPORT: _ClassVar[Rejection.Command]
    COMMAND_UNSPECIFIED: Rejection.Command
    COMMAND_HELLO: Rejection.Command
    COMMAND_SUBSCRIBE: Rejection.Command
    COMMAND_UNSUBSCRIBE: Rejection.Command
    COMMAND_REPORT: Rejection.Command
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    number: int
    command: Rejection.Command
    error: _errors_pb2.Error
    def __init__(self, number: _Optional[int] = ..., command: _Optional[_Union[Rejection.Command, str]] = ..., error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ...) -> None: ...

class Detached(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: _errors_pb2.Error
    def __init__(self, error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("welcome", "delta", "unsubscribed", "pong", "rejection", "detached", "locate", "go_away", "lag")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBED_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    REJECTION_FIELD_NUMBER: _ClassVar[int]
    DETACHED_FIELD_NUMBER: _ClassVar[int]
    LOCATE_FIELD_NUMBER: _ClassVar[int]
    GO_AWAY_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    delta: _subscriptions_pb2.Delta
    unsubscribed: Unsubscribed
    pong: Pong
    rejection: Rejection
    detached: Detached
    locate: Locate
    go_away: _streams_pb2.GoAway
    lag: Lag
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., delta: _Optional[_Union[_subscriptions_pb2.Delta, _Mapping]] = ..., unsubscribed: _Optional[_Union[Unsubscribed, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ..., rejection: _Optional[_Union[Rejection, _Mapping]] = ..., detached: _Optional[_Union[Detached, _Mapping]] = ..., locate: _Optional[_Union[Locate, _Mapping]] = ..., go_away: _Optional[_Union[_streams_pb2.GoAway, _Mapping]] = ..., lag: _Optional[_Union[Lag, _Mapping]] = ...) -> None: ...

class AttachFleetRequest(_message.Message):
    __slots__ = ("entries",)
    class Entry(_message.Message):
        __slots__ = ("device_id", "request")
        DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
        REQUEST_FIELD_NUMBER: _ClassVar[int]
        device_id: str
        request: AttachRequest
        def __init__(self, device_id: _Optional[str] = ..., request: _Optional[_Union[AttachRequest, _Mapping]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AttachFleetRequest.Entry]
    def __init__(self, entries: _Optional[_Iterable[_Union[AttachFleetRequest.Entry, _Mapping]]] = ...) -> None: ...

class AttachFleetResponse(_message.Message):
    __slots__ = ("entries", "go_away")
    class Entry(_message.Message):
        __slots__ = ("device_id", "response")
        DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
        RESPONSE_FIELD_NUMBER: _ClassVar[int]
        device_id: str
        response: AttachResponse
        def __init__(self, device_id: _Optional[str] = ..., response: _Optional[_Union[AttachResponse, _Mapping]] = ...) -> None: ...
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    GO_AWAY_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AttachFleetResponse.Entry]
    go_away: _streams_pb2.GoAway
    def __init__(self, entries: _Optional[_Iterable[_Union[AttachFleetResponse.Entry, _Mapping]]] = ..., go_away: _Optional[_Union[_streams_pb2.GoAway, _Mapping]] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("spec", "position")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    spec: _subscriptions_pb2.SubscriptionSpec
    position: _geometry_pb2.Position
    def __init__(self, spec: _Optional[_Union[_subscriptions_pb2.SubscriptionSpec, _Mapping]] = ..., position: _Optional[_Union[_geometry_pb2.Position, _Mapping]] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("matches", "time_ms")
    class Match(_message.Message):
        __slots__ = ("object", "score", "distance_m")
        OBJECT_FIELD_NUMBER: _ClassVar[int]
        SCORE_FIELD_NUMBER: _ClassVar[int]
        DISTANCE_M_FIELD_NUMBER: _ClassVar[int]
        object: _objects_pb2.Object
        score: float
        distance_m: float
        def __init__(self, object: _Optional[_Union[_objects_pb2.Object, _Mapping]] = ..., score: _Optional[float] = ..., distance_m: _Optional[float] = ...) -> None: ...
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[SearchResponse.Match]
    time_ms: int
    def __init__(self, matches: _Optional[_Iterable[_Union[SearchResponse.Match, _Mapping]]] = ..., time_ms: _Optional[int] = ...) -> None: ...

class ForgetDeviceRequest(_message.Message):
    __slots__ = ("device_id",)
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    def __init__(self, device_id: _Optional[str] = ...) -> None: ...

class ForgetDeviceResponse(_message.Message):
    __slots__ = ("subscription_count",)
    SUBSCRIPTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    subscription_count: int
    def __init__(self, subscription_count: _Optional[int] = ...) -> None: ...
