"""Sessions: the state of each device's conversation. Pure state machines, no I/O."""

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
from server.session.outbox import Outbox
from server.session.session import Session
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
