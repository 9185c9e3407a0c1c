from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATE_UNSPECIFIED: _ClassVar[NodeState]
    NODE_STATE_JOINING: _ClassVar[NodeState]
    NODE_STATE_READY: _ClassVar[NodeState]
    NODE_STATE_DRAINING: _ClassVar[NodeState]
NODE_STATE_UNSPECIFIED: NodeState
NODE_STATE_JOINING: NodeState
NODE_STATE_READY: NodeState
NODE_STATE_DRAINING: NodeState

class Node(_message.Message):
    __slots__ = ("address", "incarnation")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    address: str
    incarnation: bytes
    def __init__(self, address: _Optional[str] = ..., incarnation: _Optional[bytes] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("node", "state", "stored_offset", "rules", "has_source", "has_sink", "weights")
    NODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STORED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    HAS_SOURCE_FIELD_NUMBER: _ClassVar[int]
    HAS_SINK_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    node: Node
    state: NodeState
    stored_offset: int
    rules: int
    has_source: bool
    has_sink: bool
    weights: int
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ..., state: _Optional[_Union[NodeState, str]] = ..., stored_offset: _Optional[int] = ..., rules: _Optional[int] = ..., has_source: _Optional[bool] = ..., has_sink: _Optional[bool] = ..., weights: _Optional[int] = ...) -> None: ...

class Owner(_message.Message):
    __slots__ = ("node", "released")
    NODE_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    node: Node
    released: bool
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ..., released: _Optional[bool] = ...) -> None: ...

class Subscription(_message.Message):
    __slots__ = ("device_id", "subscription_id", "kind", "spec", "name")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    subscription_id: int
    kind: int
    spec: str
    name: str
    def __init__(self, device_id: _Optional[str] = ..., subscription_id: _Optional[int] = ..., kind: _Optional[int] = ..., spec: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class LastSeen(_message.Message):
    __slots__ = ("device_id", "time_ms")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    device_id: str
    time_ms: int
    def __init__(self, device_id: _Optional[str] = ..., time_ms: _Optional[int] = ...) -> None: ...
