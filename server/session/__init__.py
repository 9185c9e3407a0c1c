"""Sessions: the state of each device's conversation.

State machines without I/O. An outbox calls whoever writes it, and is given a clock; the epochs of
versions are drawn at random.
"""

from server.session.events import (
    Detached,
    EndReason,
    Event,
    GoAway,
    Locate,
    Pong,
    RefusedCommand,
    Rejection,
    Subscribed,
    Unsubscribed,
    VersionedDelta,
    Welcome,
)
from server.session.session import Outbox, Session
from server.session.states import State

__all__ = [
    "Detached",
    "EndReason",
    "Event",
    "GoAway",
    "Locate",
    "Outbox",
    "Pong",
    "RefusedCommand",
    "Rejection",
    "Session",
    "State",
    "Subscribed",
    "Unsubscribed",
    "VersionedDelta",
    "Welcome",
]
