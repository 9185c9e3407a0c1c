"""A subscription that may be on its way to another spec, and what it makes of deltas meanwhile.

It is of the old spec, and shows that result, until the answer is there; then it begins again, of the new
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from nearcast.errors import NearcastError
from nearcast.model import Spec
from nearcast.protocol.spec_change import SpecChange
from nearcast.v1 import subscriptions_pb2


class ChangingSpec(ABC):
    """The changes of one subscription, one after the other."""

    spec: Spec
    change: SpecChange | None
    """To another spec, under way."""
    _known: bool

    @abstractmethod
    def apply(self, delta: subscriptions_pb2.Delta) -> int:
        """Take over a delta; return how many objects it brought."""

    @abstractmethod
    def _begin(self, spec: Spec) -> None:
        """Hold nothing, of a spec."""

    @abstractmethod
    def _answer_first(self, error: NearcastError | None = None) -> None:
        """Let those go who wait for the first delta."""

    @property
    def is_changing(self) -> bool:
        """Whether the server has been asked for another spec."""
        return self.change is not None and self.change.is_sent

    @property
    def is_ready_to_ask(self) -> bool:
        """Whether a change may be asked for now: the answers to what was asked before have come."""
        change = self.change
        return change is not None and not change.is_sent and (self._known or change.is_foreign)

    @property
    def needs_exact_position(self) -> bool:
        """Whether the server must know where the device is, now or with the spec to come."""
        specs = [self.spec] if self.change is None else [self.spec, self.change.latest.spec]
        return any(one.region.needs_exact_position for one in specs)

    def want(self, spec: Spec, *, is_online: bool) -> None:
        """Take note that the app wants a spec: the one that it has, or another."""
        change = self.change
        if change is None:
            if spec == self.spec:
                return
            if self._known or is_online:
                self.change = SpecChange(spec)
            else:
                self._begin(spec)  # whatever the server has, the next welcome tells
        elif spec == self.spec and not (change.is_sent or change.is_foreign):
            self._end_change()
        else:
            change.want(spec)

    def agree(self, spec: Spec | None, *, resumed: bool) -> None:
        """Take note of what the server has for this subscription, in a welcome."""
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
        """Note that the server does not have this subscription: it is subscribed again."""
        self._known = False
        if self.change is not None:
            self.change.is_foreign = True
            self.change.is_sent = self.change.is_in_force = False

    def receive(self, delta: subscriptions_pb2.Delta) -> int:
        """Take a delta of the server; return how many objects it brought that are applied."""
        change = self.change
        if change is not None:
            if change.is_answer(delta):
                self._take_over(change, is_same=not delta.snapshot)
            elif change.keeps_back(delta):
                return 0
        return self.apply(delta)

    def confirm(self, change: SpecChange) -> None:
        """Note that all has come that the server had sent when it had dealt with a change."""
        if self.change is change and change.is_sent and change.held:
            self._take_over(change, is_same=False)
            for delta in change.held:
                self.apply(delta)

    def refuse(self, error: NearcastError) -> bool:
        """Note that the server has refused a subscribe; return whether the subscription goes on."""
        change = self.change
        if change is None:
            return False
        if not change.is_sent:  # the first spec was refused, and another one has been asked for since
            self._answer_first(error)
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
        """Be of the new spec; `is_same` if to the server that is no other one."""
        if is_same:
            self.spec = change.spec
        elif change.spec != self.spec:
            self._begin(change.spec)
        self._end_change()

    def _end_change(self, error: NearcastError | None = None) -> None:
        """Go on without the change, or with what was asked for meanwhile."""
        if self.change is not None:
            change, self.change = self.change, self.change.queued
            change.end(error)
