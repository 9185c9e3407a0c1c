from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Message(_message.Message):
    __slots__ = ("format", "entries", "part")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    format: int
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    part: Part
    def __init__(self, format: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., part: _Optional[_Union[Part, _Mapping]] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("number", "count", "content")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    number: int
    count: int
    content: bytes
    def __init__(self, number: _Optional[int] = ..., count: _Optional[int] = ..., content: _Optional[bytes] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("time_ms", "request_id", "founding", "publish", "retract", "tick", "advance", "set_idf", "set_rules", "take_in", "set_sink", "sink_sent", "use_windows", "weights_done")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FOUNDING_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    RETRACT_FIELD_NUMBER: _ClassVar[int]
    TICK_FIELD_NUMBER: _ClassVar[int]
    ADVANCE_FIELD_NUMBER: _ClassVar[int]
    SET_IDF_FIELD_NUMBER: _ClassVar[int]
    SET_RULES_FIELD_NUMBER: _ClassVar[int]
    TAKE_IN_FIELD_NUMBER: _ClassVar[int]
    SET_SINK_FIELD_NUMBER: _ClassVar[int]
    SINK_SENT_FIELD_NUMBER: _ClassVar[int]
    USE_WINDOWS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_DONE_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    request_id: bytes
    founding: Founding
    publish: Publish
    retract: Retract
    tick: Tick
    advance: Advance
    set_idf: SetIdf
    set_rules: SetRules
    take_in: TakeIn
    set_sink: SetSink
    sink_sent: SinkSent
    use_windows: UseWindows
    weights_done: WeightsDone
    def __init__(self, time_ms: _Optional[int] = ..., request_id: _Optional[bytes] = ..., founding: _Optional[_Union[Founding, _Mapping]] = ..., publish: _Optional[_Union[Publish, _Mapping]] = ..., retract: _Optional[_Union[Retract, _Mapping]] = ..., tick: _Optional[_Union[Tick, _Mapping]] = ..., advance: _Optional[_Union[Advance, _Mapping]] = ..., set_idf: _Optional[_Union[SetIdf, _Mapping]] = ..., set_rules: _Optional[_Union[SetRules, _Mapping]] = ..., take_in: _Optional[_Union[TakeIn, _Mapping]] = ..., set_sink: _Optional[_Union[SetSink, _Mapping]] = ..., sink_sent: _Optional[_Union[SinkSent, _Mapping]] = ..., use_windows: _Optional[_Union[UseWindows, _Mapping]] = ..., weights_done: _Optional[_Union[WeightsDone, _Mapping]] = ...) -> None: ...

class Founding(_message.Message):
    __slots__ = ("rules", "area", "projection", "virtual_time", "quotas")
    class QuotasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    RULES_FIELD_NUMBER: _ClassVar[int]
    AREA_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_TIME_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    rules: int
    area: _containers.RepeatedScalarFieldContainer[float]
    projection: _containers.RepeatedScalarFieldContainer[float]
    virtual_time: bool
    quotas: _containers.ScalarMap[str, int]
    def __init__(self, rules: _Optional[int] = ..., area: _Optional[_Iterable[float]] = ..., projection: _Optional[_Iterable[float]] = ..., virtual_time: _Optional[bool] = ..., quotas: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Caller(_message.Message):
    __slots__ = ("tenant", "id", "roles")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    id: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., id: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ...) -> None: ...

class Publish(_message.Message):
    __slots__ = ("caller", "objects")
    CALLER_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    caller: Caller
    objects: _containers.RepeatedCompositeFieldContainer[Object]
    def __init__(self, caller: _Optional[_Union[Caller, _Mapping]] = ..., objects: _Optional[_Iterable[_Union[Object, _Mapping]]] = ...) -> None: ...

class Object(_message.Message):
    __slots__ = ("lon", "lat", "keywords", "ttl_ms", "payload", "key", "rectangle", "polygon")
    LON_FIELD_NUMBER: _ClassVar[int]
    LAT_FIELD_NUMBER: _ClassVar[int]
    KEYWORDS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    RECTANGLE_FIELD_NUMBER: _ClassVar[int]
    POLYGON_FIELD_NUMBER: _ClassVar[int]
    lon: float
    lat: float
    keywords: _containers.RepeatedScalarFieldContainer[str]
    ttl_ms: int
    payload: bytes
    key: str
    rectangle: _containers.RepeatedScalarFieldContainer[float]
    polygon: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, lon: _Optional[float] = ..., lat: _Optional[float] = ..., keywords: _Optional[_Iterable[str]] = ..., ttl_ms: _Optional[int] = ..., payload: _Optional[bytes] = ..., key: _Optional[str] = ..., rectangle: _Optional[_Iterable[float]] = ..., polygon: _Optional[_Iterable[float]] = ...) -> None: ...

class Retract(_message.Message):
    __slots__ = ("caller", "ids", "keys")
    CALLER_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    caller: Caller
    ids: _containers.RepeatedScalarFieldContainer[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, caller: _Optional[_Union[Caller, _Mapping]] = ..., ids: _Optional[_Iterable[int]] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class TakeIn(_message.Message):
    __slots__ = ("stream", "before", "offset", "objects", "gone")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    stream: str
    before: Cursor
    offset: str
    objects: _containers.RepeatedCompositeFieldContainer[Object]
    gone: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, stream: _Optional[str] = ..., before: _Optional[_Union[Cursor, _Mapping]] = ..., offset: _Optional[str] = ..., objects: _Optional[_Iterable[_Union[Object, _Mapping]]] = ..., gone: _Optional[_Iterable[str]] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("offset", "entry_count")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENTRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    offset: str
    entry_count: int
    def __init__(self, offset: _Optional[str] = ..., entry_count: _Optional[int] = ...) -> None: ...

class SetSink(_message.Message):
    __slots__ = ("is_on",)
    IS_ON_FIELD_NUMBER: _ClassVar[int]
    is_on: bool
    def __init__(self, is_on: _Optional[bool] = ...) -> None: ...

class SinkSent(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class UseWindows(_message.Message):
    __slots__ = ("node", "windows", "must")
    NODE_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    MUST_FIELD_NUMBER: _ClassVar[int]
    node: str
    windows: _containers.RepeatedCompositeFieldContainer[Window]
    must: bool
    def __init__(self, node: _Optional[str] = ..., windows: _Optional[_Iterable[_Union[Window, _Mapping]]] = ..., must: _Optional[bool] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("duration_ms", "count")
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    duration_ms: int
    count: int
    def __init__(self, duration_ms: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class WeightsDone(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class Tick(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Advance(_message.Message):
    __slots__ = ("time_ms",)
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    def __init__(self, time_ms: _Optional[int] = ...) -> None: ...

class SetRules(_message.Message):
    __slots__ = ("rules",)
    RULES_FIELD_NUMBER: _ClassVar[int]
    rules: int
    def __init__(self, rules: _Optional[int] = ...) -> None: ...

class SetIdf(_message.Message):
    __slots__ = ("table",)
    TABLE_FIELD_NUMBER: _ClassVar[int]
    table: bytes
    def __init__(self, table: _Optional[bytes] = ...) -> None: ...
