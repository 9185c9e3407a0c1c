"""The subscriptions of a device, and what the server knows of them.

Numbers are the device's. What was begun or ended while there was no stream is told at the next welcome,
which lists what the server has. A subscription of a kind that this SDK does not know was made by another
instance: it keeps its number and is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nearcast.model import Spec
from nearcast.protocol.specs import is_same_spec
from nearcast.protocol.subscription import Host, Subscription


class Difference(NamedTuple):
    """What the server has to be told."""

    ended: list[int]
    """Numbers of subscriptions that have ended here."""
    unknown: list[Subscription]
    """Subscriptions that it does not have."""


class SubscriptionRegistry:
    """The subscriptions of one device.

    Parameters
    ----------
    host
        Whose they are.
    """

    def __init__(self, host: Host) -> None:
        self.subscriptions: dict[int, Subscription] = {}
        self._host = host
        self._next_id = 1
        # Ended here, but the server may not know yet; and whom to tell when it does.
        self._ended_ids: set[int] = set()
        self._on_ended: dict[int, Callable[[], None]] = {}
        self._refused_ids: set[int] = set()

    def begin(self, spec: Spec) -> Subscription:
        """Begin a subscription under the next free number."""
        subscription = Subscription(self._host, self._next_id, spec)
        self._next_id += 1
        self.subscriptions[subscription.id] = subscription
        return subscription

    def end(self, subscription: Subscription, on_ended: Callable[[], None] | None) -> bool:
        """End a subscription; return whether to tell the server: if somebody waits until it knows."""
        if self.subscriptions.pop(subscription.id, None) is None:
            return False
        self._ended_ids.add(subscription.id)
        subscription.end()
        if on_ended is None:
            return False
        self._on_ended[subscription.id] = on_ended
        return True

    @property
    def is_ending(self) -> bool:
        """Whether the server has not confirmed an end that it was asked for."""
        return bool(self._on_ended)

    def ended(self, subscription_id: int) -> None:
        """Note that the server knows of an end."""
        self._ended_ids.discard(subscription_id)
        self._refused_ids.discard(subscription_id)
        self._on_ended.pop(subscription_id, lambda: None)()

    def end_refused(self, subscription_id: int) -> None:
        """Note that the server could not end a subscription: its disk is full, say. It is told again."""
        self._refused_ids.add(subscription_id)
        self._on_ended.pop(subscription_id, lambda: None)()

    def take_refused_ends(self) -> list[int]:
        """Take the numbers of subscriptions whose end was refused, to tell the server again."""
        taken = [*self._refused_ids]
        self._refused_ids.clear()
        return taken

    def interrupted(self) -> None:
        """Let those go who wait for the server to know: there is no stream."""
        for answered in self._on_ended.values():
            answered()
        self._on_ended.clear()

    def reconcile(self, listed: Mapping[int, Spec | None]) -> Difference:
        """Agree with the server on which subscriptions there are; return what it has to be told.

        Parameters
        ----------
        listed
            What the server has: specs by number, None for one of a kind that is not known here.
        """
        self._next_id = max([self._next_id, *(number + 1 for number in listed)])
        self._ended_ids &= {number for number, spec in listed.items() if spec is not None}
        ended = [number for number in listed if number in self._ended_ids]
        for number, spec in listed.items():
            if spec is None:
                self._give_way(number)
            elif number not in self._ended_ids:
                self._adopt(number, spec)
        self._refused_ids.clear()
        unknown = [one for number, one in self.subscriptions.items() if number not in listed]
        return Difference(ended, unknown)

    def _adopt(self, number: int, spec: Spec) -> None:
        mine = self.subscriptions.get(number)
        if mine is not None and is_same_spec(mine.spec, spec):
            return
        self._give_way(number)
        self.subscriptions[number] = Subscription(self._host, number, spec)

    def _give_way(self, number: int) -> None:
        """Let mine, if there is one, go on under the next free number: another instance took this one."""
        mine = self.subscriptions.pop(number, None)
        if mine is not None:
            mine.id = self._next_id
            self._next_id += 1
            self.subscriptions[mine.id] = mine
