from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

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
