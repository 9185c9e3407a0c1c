from nearcast.v1 import errors_pb2 as _errors_pb2
from nearcast.v1 import objects_pb2 as _objects_pb2
from nearcast.v1 import streams_pb2 as _streams_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PublishRequest(_message.Message):
    __slots__ = ("sequence", "objects")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    objects: _containers.RepeatedCompositeFieldContainer[_objects_pb2.NewObject]
    def __init__(self, sequence: _Optional[int] = ..., objects: _Optional[_Iterable[_Union[_objects_pb2.NewObject, _Mapping]]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("sequence", "ids", "error", "go_away")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    GO_AWAY_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    error: _errors_pb2.Error
    go_away: _streams_pb2.GoAway
    def __init__(self, sequence: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ..., error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ..., go_away: _Optional[_Union[_streams_pb2.GoAway, _Mapping]] = ...) -> None: ...

class RetractRequest(_message.Message):
    __slots__ = ("ids", "keys")
    IDS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class RetractResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
