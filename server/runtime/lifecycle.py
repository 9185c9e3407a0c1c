"""What a server is doing, from its start to its end: recovering, serving, draining."""

from __future__ import annotations

from enum import IntEnum

from server.errors import Reason, RefusalError


class ServerState(IntEnum):
    """The numbers equal those on the wire."""

    RECOVERING = 1
    """It loads its kernels and reads its store; commands are refused."""
    SERVING = 2
    DRAINING = 3
    """It is about to stop: commands are refused, what was accepted is finished."""


_REFUSALS = {
    ServerState.RECOVERING: (Reason.RECOVERING, "reading its store"),
    ServerState.DRAINING: (Reason.DRAINING, "stopping"),
}


def require_serving(state: ServerState) -> None:
    """Raise RefusalError (RECOVERING, DRAINING) if commands are not taken now."""
    if state is not ServerState.SERVING:
        reason, doing = _REFUSALS[state]
        raise RefusalError(reason, "server", doing, "running; try again")
