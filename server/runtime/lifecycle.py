"""The states of a server from start to end: recovering, serving, draining."""

from __future__ import annotations

from enum import IntEnum

from nearcast.errors import Reason, RefusedError


class ServerState(IntEnum):
    """The state of a server. The numbers equal those on the wire."""

    RECOVERING = 1
    """The server loads its kernels and reads its store; commands are refused."""
    SERVING = 2
    DRAINING = 3
    """The server is about to stop: new commands are refused, accepted ones are finished."""


_REFUSALS = {
    ServerState.RECOVERING: (Reason.RECOVERING, "starting"),
    ServerState.DRAINING: (Reason.DRAINING, "stopping"),
}


def require_serving(state: ServerState) -> None:
    """Raise RefusedError (RECOVERING, DRAINING) if commands are not accepted now."""
    if state is not ServerState.SERVING:
        reason, doing = _REFUSALS[state]
        raise RefusedError(reason, "server", doing, "running; try again")
