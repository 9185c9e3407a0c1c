from nearcast.v1 import errors_pb2 as _errors_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GoAway(_message.Message):
    __slots__ = ("error", "admitted_count")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    error: _errors_pb2.Error
    admitted_count: int
    def __init__(self, error: _Optional[_Union[_errors_pb2.Error, _Mapping]] = ..., admitted_count: _Optional[int] = ...) -> None: ...
