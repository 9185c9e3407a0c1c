"""The change of a subscription to another spec, and the deltas that arrive during the change.

Until the response arrives, the subscription has the old spec and shows the old result. Then it starts
again with the new spec.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from nearcast.errors import NearcastError
from nearcast.model import Spec
from nearcast.protocol.spec_change import SpecChange
from nearcast.v1 import subscriptions_pb2


class ChangingSpec(ABC):
    """Processes the changes of one subscription in order."""

    spec: Spec
    change: SpecChange | None
    """Change to another spec that is in progress; None if there is none."""
    _known: bool

    @abstractmethod
    def apply(self, delta: subscriptions_pb2.Delta) -> int:
        """Apply a delta; return the number of objects that it added."""

    @abstractmethod
    def _begin(self, spec: Spec) -> None:
        """Start with a spec and an empty buffer."""

    @abstractmethod
    def _wake_callers(self, error: NearcastError | None = None) -> None:
        """Wake the callers that wait for a result."""

    @property
    def is_changing(self) -> bool:
        """Whether a change to another spec has been sent to the server."""
        return self.change is not None and self.change.is_sent

    @property
    def is_ready_to_ask(self) -> bool:
        """Whether a change may be requested now: all earlier requests have their responses."""
        change = self.change
        return change is not None and not change.is_sent and (self._known or change.is_foreign)

    @property
    def needs_exact_position(self) -> bool:
        """Whether the current spec or the next one needs the exact position of the device."""
        specs = [self.spec] if self.change is None else [self.spec, self.change.latest.spec]
        return any(one.region.needs_exact_position for one in specs)

    def want(self, spec: Spec, *, is_online: bool) -> None:
        """Record the spec that the app requests: the current spec, or another one."""
        change = self.change
        if change is None:
            if spec == self.spec:
                return
            if self._known or is_online:
                self.change = SpecChange(spec)
            else:
                self._begin(spec)  # the next welcome lists the server's subscriptions
        elif spec == self.spec and not (change.is_sent or change.is_foreign):
            self._end_change()
        else:
            change.want(spec)

    def agree(self, spec: Spec | None, *, resumed: bool) -> None:
        """Record the server's spec for this subscription, from a welcome."""
        change = self.change
        if change is None:
            if spec != self.spec:
                self.change = SpecChange(self.spec, is_foreign=True)
                self._known = False
            return
        held, change.held = change.held, []
        if spec == change.spec:
            change.is_sent = True
            if resumed:
                change.held = held
            else:
                change.is_in_force = True
            return
        change.is_sent = change.is_in_force = False
        if spec != self.spec:
            change.is_foreign = True
        elif resumed and not change.is_foreign:
            for delta in held:
                self.apply(delta)

    def forgotten(self) -> None:
        """Record that the server does not have this subscription: the device subscribes again."""
        self._known = False
        if self.change is not None:
            self.change.is_foreign = True
            self.change.is_sent = self.change.is_in_force = False

    def receive(self, delta: subscriptions_pb2.Delta) -> int:
        """Process a delta of the server; return the number of objects that were added."""
        change = self.change
        if change is not None:
            if change.is_answer(delta):
                self._take_over(change, is_same=not delta.snapshot)
            elif change.keeps_back(delta):
                return 0
        return self.apply(delta)

    def confirm(self, change: SpecChange) -> None:
        """Record that all messages have arrived that the server sent before it processed the ping.

        The server had processed the change before that ping.
        """
        if self.change is change and change.is_sent and change.held:
            self._take_over(change, is_same=False)
            for delta in change.held:
                self.apply(delta)

    def refuse(self, error: NearcastError) -> bool:
        """Record that the server refused a subscribe; return whether the subscription continues."""
        change = self.change
        if change is None:
            return False
        if not change.is_sent:  # the first spec was refused, and the app has requested another one since
            self._wake_callers(error)
            change.is_foreign = True
            return True
        if change.is_foreign:
            if change.queued is None:
                return False
            change.queued.is_foreign = True
        self._end_change(error)
        if not change.is_foreign:
            for delta in change.held:
                self.apply(delta)
        return True

    def _take_over(self, change: SpecChange, *, is_same: bool) -> None:
        """Switch to the new spec; `is_same` if the server considers both specs the same."""
        if is_same:
            self.spec = change.spec
        elif change.spec != self.spec:
            self._begin(change.spec)
        self._end_change()

    def _end_change(self, error: NearcastError | None = None) -> None:
        """End the change, and continue with the queued change if there is one."""
        if self.change is not None:
            change, self.change = self.change, self.change.queued
            change.end(error)
