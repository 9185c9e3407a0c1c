"""Bounds on the size of a message, and on each of its fields, before it is parsed.

Requests are validated later, with errors that name every limit exactly. These bounds are for absurd
messages: they follow from the limits, with a margin for honest mistakes, and are checked on the bytes of
a message (`server/transport/wire_walk.py`), so that no caller can make the server parse and convert half
a million clauses only to refuse them.
"""

from __future__ import annotations

from typing import NamedTuple

from server.limits import Limits

_ROOM = 8
"""Ratio of these bounds to the limits; validation refuses values in between."""

_NAME_CHARACTER_BYTES = 4
_KEYWORD_CHARACTER_BYTES = 16
"""Bytes of a keyword before it is normalised: four per character, and four characters for each result."""

_KIB = 1024


class MessageBound(NamedTuple):
    """The bounds on a message of a method."""

    bytes_max: int
    elements_max: int
    """Number of fields, including those of nested messages."""


SMALL = MessageBound(4 * _KIB, 256)
"""For requests that name something."""


def message_bounds(limits: Limits) -> dict[str, MessageBound]:
    """Return the bound of each method's messages, by the method's name; all others are `SMALL`."""
    return {
        "Attach": MessageBound(limits.request_bytes_max, 8_192),
        "Search": MessageBound(limits.request_bytes_max, 8_192),
        "AttachFleet": MessageBound(limits.fleet_bytes_max, 65_536),
        "Publish": MessageBound(limits.message_bytes_max, 100_000),
        "Retract": MessageBound(limits.fleet_bytes_max, 16_384),
        "SetIdf": MessageBound(limits.message_bytes_max, 400_000),
    }


def field_counts(limits: Limits) -> dict[str, int]:
    """Return the maximum count of each repeated field, by message and field."""
    request_max = _ROOM * limits.objects_per_request_max
    return {
        "AttachFleetRequest.entries": 8_192,
        "Boolean.clauses": _ROOM * limits.clauses_max,
        "Clause.excluded": _ROOM * limits.clause_keywords_max,
        "Clause.required": _ROOM * limits.clause_keywords_max,
        "NewObject.keywords": _ROOM * limits.object_keywords_max,
        "Polygon.holes": _ROOM * limits.clauses_max,
        "PublishRequest.objects": request_max,
        "Report.subscription_ids": _ROOM * limits.subscriptions_per_device_max,
        "RetractRequest.ids": request_max,
        "RetractRequest.keys": request_max,
        "Ring.vertices": _ROOM * limits.vertices_max,
        "SetIdfRequest.weights": 100_000,
        "TopK.keywords": _ROOM * limits.subscription_keywords_max,
    }


def field_bytes(limits: Limits) -> dict[str, int]:
    """Return the maximum bytes of a text, by message and field; other texts may fill the message."""
    keyword = _KEYWORD_CHARACTER_BYTES * limits.keyword_length_max
    name = _ROOM * _NAME_CHARACTER_BYTES * limits.name_length_max
    return {
        "Clause.excluded": keyword,
        "Clause.required": keyword,
        "NewObject.keywords": keyword,
        "NewObject.key": name,
        "NewObject.payload": _ROOM * limits.payload_bytes_max,
        "TopK.keywords": keyword,
        "WeightsEntry.key": keyword,
    }
