from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_REASON_UNSPECIFIED: _ClassVar[ErrorReason]
    ERROR_REASON_INVALID_FIELD: _ClassVar[ErrorReason]
    ERROR_REASON_OUT_OF_AREA: _ClassVar[ErrorReason]
    ERROR_REASON_UNKNOWN_OBJECT: _ClassVar[ErrorReason]
    ERROR_REASON_UNKNOWN_SUBSCRIPTION: _ClassVar[ErrorReason]
    ERROR_REASON_SUBSCRIPTION_EXISTS: _ClassVar[ErrorReason]
    ERROR_REASON_TOO_MANY: _ClassVar[ErrorReason]
    ERROR_REASON_DEVICE_IN_USE: _ClassVar[ErrorReason]
    ERROR_REASON_SUPERSEDED: _ClassVar[ErrorReason]
    ERROR_REASON_OUT_OF_ORDER: _ClassVar[ErrorReason]
    ERROR_REASON_UNAUTHENTICATED: _ClassVar[ErrorReason]
    ERROR_REASON_NOT_VIRTUAL: _ClassVar[ErrorReason]
    ERROR_REASON_TIME_BACKWARDS: _ClassVar[ErrorReason]
    ERROR_REASON_DRAINING: _ClassVar[ErrorReason]
    ERROR_REASON_INTERNAL: _ClassVar[ErrorReason]
    ERROR_REASON_SILENT: _ClassVar[ErrorReason]
    ERROR_REASON_LEASE_EXPIRED: _ClassVar[ErrorReason]
    ERROR_REASON_RECOVERING: _ClassVar[ErrorReason]
    ERROR_REASON_UNIMPLEMENTED: _ClassVar[ErrorReason]
    ERROR_REASON_PERMISSION_DENIED: _ClassVar[ErrorReason]
    ERROR_REASON_TOKEN_EXPIRED: _ClassVar[ErrorReason]
    ERROR_REASON_RATE_LIMITED: _ClassVar[ErrorReason]
    ERROR_REASON_FORGOTTEN: _ClassVar[ErrorReason]
    ERROR_REASON_ANOTHER_SERVER: _ClassVar[ErrorReason]
    ERROR_REASON_LAGGING: _ClassVar[ErrorReason]
ERROR_REASON_UNSPECIFIED: ErrorReason
ERROR_REASON_INVALID_FIELD: ErrorReason
ERROR_REASON_OUT_OF_AREA: ErrorReason
ERROR_REASON_UNKNOWN_OBJECT: ErrorReason
ERROR_REASON_UNKNOWN_SUBSCRIPTION: ErrorReason
ERROR_REASON_SUBSCRIPTION_EXISTS: ErrorReason
ERROR_REASON_TOO_MANY: ErrorReason
ERROR_REASON_DEVICE_IN_USE: ErrorReason
ERROR_REASON_SUPERSEDED: ErrorReason
ERROR_REASON_OUT_OF_ORDER: ErrorReason
ERROR_REASON_UNAUTHENTICATED: ErrorReason
ERROR_REASON_NOT_VIRTUAL: ErrorReason
ERROR_REASON_TIME_BACKWARDS: ErrorReason
ERROR_REASON_DRAINING: ErrorReason
ERROR_REASON_INTERNAL: ErrorReason
ERROR_REASON_SILENT: ErrorReason
ERROR_REASON_LEASE_EXPIRED: ErrorReason
ERROR_REASON_RECOVERING: ErrorReason
ERROR_REASON_UNIMPLEMENTED: ErrorReason
ERROR_REASON_PERMISSION_DENIED: ErrorReason
ERROR_REASON_TOKEN_EXPIRED: ErrorReason
ERROR_REASON_RATE_LIMITED: ErrorReason
ERROR_REASON_FORGOTTEN: ErrorReason
ERROR_REASON_ANOTHER_SERVER: ErrorReason
ERROR_REASON_LAGGING: ErrorReason

class Error(_message.Message):
    __slots__ = ("reason", "message", "field", "value", "limit", "code", "retry_after_ms", "server")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    SERVER_FIELD_NUMBER: _ClassVar[int]
    reason: ErrorReason
    message: str
    field: str
    value: str
    limit: str
    code: int
    retry_after_ms: int
    server: str
    def __init__(self, reason: _Optional[_Union[ErrorReason, str]] = ..., message: _Optional[str] = ..., field: _Optional[str] = ..., value: _Optional[str] = ..., limit: _Optional[str] = ..., code: _Optional[int] = ..., retry_after_ms: _Optional[int] = ..., server: _Optional[str] = ...) -> None: ...
