"""The outcomes of the latest requests in the log: a request that comes again gets the first reply.

The table is part of the state that all nodes share. It forgets an outcome when the time of the log is
`KEPT_MS` later. O(1) per request.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable

from nearcast.errors import Reason, RefusedError
from server.store.mutations import Outcome

Reply = list[int] | int | None | RefusedError
"""Ids, the virtual time, nothing, or a refusal."""

KEPT_MS = 120_000
"""How long outcomes are kept, in time of the log. Part of the rules: all nodes forget together."""


class Outcomes:
    """Outcomes by the id of the request.

    Parameters
    ----------
    outcomes
        Those of a store, oldest first.
    """

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._order = deque(outcomes)
        self._of = {one.request_id: one for one in self._order}

    def __len__(self) -> int:
        return len(self._order)

    def get(self, request_id: bytes) -> Outcome | None:
        """Return the outcome of a request; None for a new one."""
        return self._of.get(request_id)

    def put(self, outcome: Outcome) -> None:
        """Add the outcome of a request, the latest of all."""
        self._order.append(outcome)
        self._of[outcome.request_id] = outcome

    def forget(self, log_ms: int) -> Outcome | None:
        """Forget old outcomes by the time of the log; return the last one."""
        gone = None
        while self._order and self._order[0].time_ms <= log_ms - KEPT_MS:
            gone = self._order.popleft()
            del self._of[gone.request_id]
        return gone

    def all(self) -> list[Outcome]:
        """Return all outcomes, oldest first."""
        return list(self._order)


def encoded(reply: Reply) -> str:
    """Return a reply as JSON."""
    if isinstance(reply, RefusedError):
        reason = int(reply.reason)
        return json.dumps({"refused": [reason, reply.field, reply.value, reply.limit, str(reply)]})
    return json.dumps(reply, separators=(",", ":"))


def decoded(text: str) -> Reply:
    """Return the reply in a text of `encoded`."""
    found = json.loads(text)
    if isinstance(found, dict):
        reason, *rest = found["refused"]
        return RefusedError(Reason(reason), *rest)
    reply: Reply = found
    return reply
