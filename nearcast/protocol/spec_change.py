"""A change of a subscription to another spec, which the server makes in place.

The response is one snapshot with CAUSE_SUBSCRIBED, or a rejection. Earlier messages belong to the old
spec. A snapshot with another cause does not show its spec: the server coalesced the deltas of a slow
device, or evaluated the change together with a report that followed it. The device holds this snapshot
until the pong of the ping that it sent after the subscribe. By then the response or the rejection has
arrived, or the snapshot belongs to the new spec.

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
        The new spec.
    is_foreign
        Whether the server has another subscription under the number, or none. The device drops the deltas
        of that subscription.
    """

    def __init__(self, spec: Spec, *, is_foreign: bool = False) -> None:
        self.spec = spec
        self.is_foreign = is_foreign
        self.is_sent = False
        self.is_in_force = False
        """Whether the server already has the new spec, so that any snapshot belongs to it."""
        self.queued: SpecChange | None = None
        """Change that the app requested during this one; None if there is none."""
        self.held: list[subscriptions_pb2.Delta] = []
        """Deltas that belong to either spec, a snapshot first."""
        self._done: asyncio.Future[None] | None = None

    def want(self, spec: Spec) -> None:
        """Record that the app requests yet another spec; the latest one counts."""
        if not self.is_sent:
            self.spec = spec
        elif self.queued is None:
            self.queued = None if spec == self.spec else SpecChange(spec)
        else:
            self.queued.spec = spec

    @property
    def latest(self) -> SpecChange:
        """The change that the app requested last."""
        return self if self.queued is None else self.queued

    def sent(self) -> None:
        """Record that the change has been sent to the server."""
        self.is_sent = True
        self.held.clear()

    def is_answer(self, delta: subscriptions_pb2.Delta) -> bool:
        """Return whether a delta is the first delta of the new spec.

        Raises
        ------
        NearcastError
            If the delta is a difference to a state that this device never had: the device has to resume.
        """
        if not self.is_sent:
            return False
        is_first = delta.cause == subscriptions_pb2.CAUSE_SUBSCRIBED
        if is_first and self.is_foreign and not delta.snapshot:
            raise NearcastError(f"subscription {delta.subscription_id}: expected a snapshot")
        return is_first or (self.is_in_force and delta.snapshot)

    def keeps_back(self, delta: subscriptions_pb2.Delta) -> bool:
        """Return whether a delta must not be applied now. It is dropped or held."""
        if self.is_sent and (self.held or delta.snapshot):
            self.held.append(delta)
            return True
        return self.is_foreign

    def end(self, error: NearcastError | None = None) -> None:
        """Wake the callers that wait for the change; raise the error there if there is one."""
        if self._done is not None and not self._done.done():
            if error is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(error)
                self._done.exception()  # as in `Subscription`: the waiting tasks may be cancelled

    async def done(self) -> None:
        """Wait for the response; raise the error of a refusal."""
        if self._done is None:
            self._done = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._done)
