from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CopyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CopyResponse(_message.Message):
    __slots__ = ("snapshot", "content")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    snapshot: Snapshot
    content: bytes
    def __init__(self, snapshot: _Optional[_Union[Snapshot, _Mapping]] = ..., content: _Optional[bytes] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("log_id", "offset", "size_bytes", "sha256")
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    log_id: str
    offset: int
    size_bytes: int
    sha256: bytes
    def __init__(self, log_id: _Optional[str] = ..., offset: _Optional[int] = ..., size_bytes: _Optional[int] = ..., sha256: _Optional[bytes] = ...) -> None: ...
