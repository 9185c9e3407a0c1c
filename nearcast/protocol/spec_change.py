"""A subscription on its way to another spec, which the server changes in place.

The answer is one snapshot with CAUSE_SUBSCRIBED, or a rejection; what was sent before is of the old spec.
A snapshot with another cause does not say which spec it is of: deltas of a slow device were coalesced, or
a report followed so soon that both were evaluated as one. It is held back until the ping that was sent
behind the subscribe is answered: by then either the answer or the rejection has come, or the snapshot is
of the new spec.

Operations: O(1) a delta.
"""

from __future__ import annotations

import asyncio

from nearcast.errors import NearcastError
from nearcast.model import Spec
from nearcast.v1 import subscriptions_pb2


class SpecChange:
    """One change.

    Parameters
    ----------
    spec
        What the subscription is to ask for.
    is_foreign
        Whether the server has something else under the number, or nothing: what it sends of that is
        dropped.
    """

    def __init__(self, spec: Spec, *, is_foreign: bool = False) -> None:
        self.spec = spec
        self.is_foreign = is_foreign
        self.is_sent = False
        self.is_in_force = False
        """Whether the server has the new spec by now, so that any snapshot is of it."""
        self.queued: SpecChange | None = None
        """What was asked for meanwhile."""
        self.held: list[subscriptions_pb2.Delta] = []
        """Deltas of either spec, a snapshot first."""
        self._done: asyncio.Future[None] | None = None

    def want(self, spec: Spec) -> None:
        """Take note that yet another spec is asked for; the latest counts."""
        if not self.is_sent:
            self.spec = spec
        elif self.queued is None:
            self.queued = None if spec == self.spec else SpecChange(spec)
        else:
            self.queued.spec = spec

    @property
    def latest(self) -> SpecChange:
        """The change that was asked for last."""
        return self if self.queued is None else self.queued

    def sent(self) -> None:
        """Note that the server has been asked."""
        self.is_sent = True
        self.held.clear()

    def is_answer(self, delta: subscriptions_pb2.Delta) -> bool:
        """Whether a delta is the first of the new spec.

        Raises
        ------
        NearcastError
            If it is a difference to what this device never had: the stream has to be resumed.
        """
        if not self.is_sent:
            return False
        is_first = delta.cause == subscriptions_pb2.CAUSE_SUBSCRIBED
        if is_first and self.is_foreign and not delta.snapshot:
            raise NearcastError(f"subscription {delta.subscription_id}: a snapshot was to come")
        return is_first or (self.is_in_force and delta.snapshot)

    def keeps_back(self, delta: subscriptions_pb2.Delta) -> bool:
        """Whether a delta is not to be applied now: it is dropped, or held."""
        if self.is_sent and (self.held or delta.snapshot):
            self.held.append(delta)
            return True
        return self.is_foreign

    def end(self, error: NearcastError | None = None) -> None:
        """Let those go who wait, and those of what was asked for meanwhile if there is an error."""
        if self._done is not None and not self._done.done():
            if error is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(error)
                self._done.exception()  # as in `Subscription`: who waited may have been cancelled

    async def done(self) -> None:
        """Wait for the answer, or for the refusal."""
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._done)
