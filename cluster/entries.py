"""The entries of the log. An entry means the same on every node, whenever it is read.

The node that appends an entry does all that may differ between machines: it checks and normalises
objects, and chooses the point of an area. Everything that depends on other entries is decided when the
entry is applied (`server/replication`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nearcast.canonical import NewObject, Window
from safe_region.scoring.idf import IdfTable

FORMAT = 1
"""The format of messages that this version writes, and the latest that it reads."""

RULES = 2
"""The latest rules of applying that this version knows. It knows all earlier ones, too.

2 adds `TakeIn`, `SetSink`, `SinkSent`, `UseWindows` and `WeightsDone`. With it, a table of weights is
refused until all nodes are done with the last one, and so is a request that is more than `LATE_MS` late.

A change of what entries mean, or of their format, has a number. Nodes go by the rules in force, which
those of the founding are until a `SetRules` (`server/replication/agreement.py`).
"""

FIRST_RULES = 1

SECOND_RULES = 2

LATE_MS = 60_000
"""A request is refused that is appended so long after its time: its publisher was told long before that
it may have failed, and may have published something else since."""


@dataclass(frozen=True, slots=True)
class Founding:
    """The first entry of a log: what all nodes have to agree on."""

    rules: int
    area: tuple[float, ...]
    """West, south, east, north in degrees."""
    projection: tuple[float, ...]
    """The numbers of `Frame`. Nodes compare them bit by bit, since they come from a cosine."""
    virtual_time: bool
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Quotas of objects, by the name of the limit."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The publisher or operator, as the node that appended the entry has authenticated it."""

    tenant: str
    id: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish valid objects in canonical form, all or none."""

    caller: Caller
    objects: tuple[NewObject, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """Retract objects, all or none."""

    caller: Caller
    ids: tuple[int, ...]
    keys: tuple[str, ...]


class Cursor(NamedTuple):
    """How far a stream of the source was read."""

    offset: str
    """The offset in the stream, as its feed counts; empty before the first entry."""
    entry_count: int
    """The number of entries that were read into the log up to there. No two cursors have the same one."""


NO_CURSOR = Cursor("", 0)
"""The cursor of a stream that was never read."""


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Take in the next rows of a stream of the source, all or none.

    It has an effect only if the cursor of the stream is `before` when it is applied. So rows count once,
    whatever nodes append them.
    """

    stream: str
    before: Cursor
    offset: str
    """The offset in the stream after these rows."""
    objects: tuple[NewObject, ...]
    """Objects with keys. Those with a known key are ignored."""
    gone: tuple[str, ...]
    """Keys of retracted objects, known or not."""


@dataclass(frozen=True, slots=True)
class SetSink:
    """Begin or end to keep changes of objects for the sink. The end deletes those that are kept."""

    is_on: bool


@dataclass(frozen=True, slots=True)
class SinkSent:
    """The changes up to a number were written to the sink, and are no longer kept."""

    number: int


@dataclass(frozen=True, slots=True)
class UseWindows:
    """Claim windows for the subscriptions of a node, in place of its last claim.

    It is refused if the nodes together would have too many different ones, unless it must not be.
    """

    node: str
    """The address of the node."""
    windows: tuple[Window, ...]
    must: bool
    """Whether the node uses them already."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing but the time of the entry."""


@dataclass(frozen=True, slots=True)
class Advance:
    """Set the virtual time."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class SetIdf:
    """Bring a table of keyword weights into force."""

    table: IdfTable


@dataclass(frozen=True, slots=True)
class WeightsDone:
    """All nodes have a table of keyword weights in force. Without a response, like `SetRules`."""

    generation: int


@dataclass(frozen=True, slots=True)
class SetRules:
    """Bring later rules into force, for this entry's successors."""

    rules: int


Change = (
    Founding
    | Publish
    | Retract
    | TakeIn
    | SetSink
    | SinkSent
    | UseWindows
    | Tick
    | Advance
    | SetIdf
    | WeightsDone
    | SetRules
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A change with the time of the node that appended it."""

    time_ms: int
    """0 in virtual time."""
    change: Change
    request_id: bytes = b""
    """Empty for changes without a response. A repeated entry has the id of the first."""
