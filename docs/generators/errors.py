"""Writes the reference of error reasons from their declarations: reasons, comments, status codes."""

from __future__ import annotations

from docs.generators.protocol import files
from safe_region.reasons import Reason
from server.transport.status import CODES

_HEAD = """\
# Error reasons

Every refusal has one of these reasons. In the SDK it is `RefusedError.reason`; on the wire it is
`Error.reason`, and the name in `google.rpc.ErrorInfo`. `make reference` writes this page from the
declarations (`proto/nearcast/v1/errors.proto`, `server/transport/status.py`); a test compares them.
[Errors](../protocol.md#errors) describes where an error is in a message, and when a stream ends with it.
[Errors of the SDK](../sdk.md#errors) describes the exceptions.

| reason | number | status of a call | meaning |
|---|---|---|---|
"""
_FILE, _ENUM = "nearcast/v1/errors.proto", "ErrorReason"
_ENUMS, _VALUES = 5, 2
"""Numbers of the fields in descriptors, which make the paths of comments."""


def page() -> str:
    """Return the page."""
    (file,) = [one for one in files() if one.name == _FILE]
    names = [enum.name for enum in file.enum_type]
    place = (_ENUMS, names.index(_ENUM), _VALUES)
    comments = {tuple(one.path): one.leading_comments for one in file.source_code_info.location}
    rows = []
    for position, value in enumerate(file.enum_type[names.index(_ENUM)].value):
        reason = Reason(value.number)
        if reason in CODES:
            meaning = " ".join(comments[*place, position].split())
            rows.append(f"| {reason.name} | {reason.value} | {CODES[reason].name} | {meaning} |\n")
    return _HEAD + "".join(rows)
