"""The states of a session, and the commands that change them.

    state        attach       overflow     caught up  detach    park     push
    DETACHED     IN_SYNC                              DETACHED  PARKED   kept for a resume
    IN_SYNC      IN_SYNC (1)  CATCHING_UP             DETACHED           kept and queued
    CATCHING_UP  IN_SYNC (1)               IN_SYNC    DETACHED           left to the snapshot
    PARKED       IN_SYNC (2)                          PARKED    PARKED   refused

An empty field is refused. (1) A later stream of the same instance takes over, or another instance that
may (`instances.py`), with snapshots. (2) With snapshots. The subscriptions of a PARKED device are not
evaluated, and the device costs no more than its place in the list.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a session."""

    IN_SYNC = "in sync"
    """Attached: every delta is queued as it happens."""
    CATCHING_UP = "catching up"
    """Attached, but too slow: a snapshot of the latest state waits for its turn."""
    DETACHED = "detached"
    """Disconnected: deltas are kept for its return."""
    PARKED = "parked"
    """Parked: nothing is evaluated until its return."""


class Command(Enum):
    """The commands that change the state of a session."""

    ATTACH = "attach"
    OVERFLOW = "overflow"
    CATCH_UP = "catch up"
    DETACH = "detach"
    PARK = "park"


TRANSITIONS: dict[tuple[State, Command], State] = {
    (State.DETACHED, Command.ATTACH): State.IN_SYNC,
    (State.IN_SYNC, Command.ATTACH): State.IN_SYNC,
    (State.CATCHING_UP, Command.ATTACH): State.IN_SYNC,
    (State.PARKED, Command.ATTACH): State.IN_SYNC,
    (State.IN_SYNC, Command.OVERFLOW): State.CATCHING_UP,
    (State.CATCHING_UP, Command.CATCH_UP): State.IN_SYNC,
    (State.DETACHED, Command.DETACH): State.DETACHED,
    (State.IN_SYNC, Command.DETACH): State.DETACHED,
    (State.CATCHING_UP, Command.DETACH): State.DETACHED,
    (State.PARKED, Command.DETACH): State.PARKED,
    (State.DETACHED, Command.PARK): State.PARKED,
    (State.PARKED, Command.PARK): State.PARKED,
}
