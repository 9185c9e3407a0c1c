"""List the reasons of refusals, once for the SDK and the server."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """The reason of a refusal. The numbers equal those on the wire (`errors.proto`).

    It prints as its name; as a number it is `int(reason)`, and so it is in JSON.
    """

    UNSPECIFIED = 0
    """The value that a device reads when the server knows more reasons. No server sends it."""
    INVALID_FIELD = 1
    OUT_OF_AREA = 2
    UNKNOWN_OBJECT = 3
    UNKNOWN_SUBSCRIPTION = 4
    SUBSCRIPTION_EXISTS = 5
    TOO_MANY = 6
    DEVICE_IN_USE = 7
    SUPERSEDED = 8
    OUT_OF_ORDER = 9
    UNAUTHENTICATED = 10
    NOT_VIRTUAL = 11
    TIME_BACKWARDS = 12
    DRAINING = 13
    INTERNAL = 14
    SILENT = 15
    LEASE_EXPIRED = 16
    RECOVERING = 17
    UNIMPLEMENTED = 18
    PERMISSION_DENIED = 19
    TOKEN_EXPIRED = 20
    RATE_LIMITED = 21
    FORGOTTEN = 22
    ANOTHER_SERVER = 23
    LAGGING = 24

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return int.__format__(self, spec) if spec else self.name
