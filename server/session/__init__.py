"""Sessions: the state of each device's conversation.

They are state machines without I/O. An outbox notifies its writer through a callback, and gets a clock;
the epochs of versions are random.
"""

from server.session.events import (
    Detached,
    EndReason,
    Event,
    GoAway,
    Lag,
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
    "Lag",
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
