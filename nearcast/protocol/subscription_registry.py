"""The subscriptions of a device, and their reconciliation with the server.

The device assigns the numbers of subscriptions. It sends the subscriptions that started or ended without
a stream after the next welcome, which lists the subscriptions of the server. If they differ:

* A subscription with a name is the server's subscription of that name, under any number. It takes the
  server's number and keeps the spec of the app.
* A subscription without a name continues under another number if the server has another spec under its
  number.
* A subscription of a kind that this SDK does not know was made by another instance. It keeps its number
  and is ignored, unless the app subscribes under its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nearcast.model import Spec
from nearcast.protocol.held_subscription import HeldSubscription, Host
from nearcast.protocol.spec_change import SpecChange


class Listed(NamedTuple):
    """A subscription in the list of a welcome."""

    spec: Spec | None
    """None if its kind is unknown to this SDK."""
    name: str = ""


class Difference(NamedTuple):
    """Differences that the device has to send to the server."""

    ended: list[int]
    """Numbers of subscriptions that have ended on the device."""
    unknown: list[HeldSubscription]
    """Subscriptions that the server does not have."""
    changed: list[HeldSubscription]
    """Subscriptions with a change in progress to another spec, which the server may already have."""


class SubscriptionRegistry:
    """The subscriptions of one device.

    Parameters
    ----------
    host
        Session of the device.
    """

    def __init__(self, host: Host) -> None:
        self.subscriptions: dict[int, HeldSubscription] = {}
        self._host = host
        self._next_id = 1
        # Subscriptions that ended here and may be unconfirmed, and callbacks for the confirmations.
        self.ended_ids: set[int] = set()
        """Subscriptions of which the server has yet to confirm the end."""
        self._on_ended: dict[int, Callable[[], None]] = {}
        self._refused_ids: set[int] = set()
        self._foreign: dict[str, int] = {}
        """Numbers of the server's subscriptions that do not exist here, by name."""

    def begin(self, spec: Spec, name: str = "") -> HeldSubscription:
        """Start a subscription under the server's number for its name, or under a new number."""
        number = self._foreign.pop(name, None) if self._host.is_online else None
        if number is None:
            number = self._next_id
            self._next_id += 1
            subscription = HeldSubscription(self._host, number, spec, name)
        else:
            subscription = HeldSubscription(self._host, number, spec, name)
            subscription.change = SpecChange(spec, is_foreign=True)
        self.subscriptions[number] = subscription
        return subscription

    def named(self, name: str) -> HeldSubscription | None:
        """Return the subscription of a name, or None. O(subscriptions)."""
        return next((one for one in self.subscriptions.values() if one.name == name), None)

    def end(self, subscription: HeldSubscription, on_ended: Callable[[], None] | None) -> bool:
        """End a subscription; return whether to send an unsubscribe: if there is a callback."""
        if self.subscriptions.pop(subscription.id, None) is None:
            return False
        self.ended_ids.add(subscription.id)
        subscription.end()
        if on_ended is None:
            return False
        self._on_ended[subscription.id] = on_ended
        return True

    @property
    def is_ending(self) -> bool:
        """Whether an unsubscribe waits for its confirmation."""
        return bool(self._on_ended)

    def ended(self, subscription_id: int) -> None:
        """Record that the server has confirmed an end."""
        self.ended_ids.discard(subscription_id)
        self._refused_ids.discard(subscription_id)
        self._on_ended.pop(subscription_id, lambda: None)()

    def end_refused(self, subscription_id: int) -> None:
        """Record that the server could not end a subscription, for example because its disk is full.

        The device sends the unsubscribe again.
        """
        self._refused_ids.add(subscription_id)
        self._on_ended.pop(subscription_id, lambda: None)()

    def take_refused_ends(self) -> list[int]:
        """Return and clear the sorted numbers of subscriptions with a refused end, to send them again."""
        taken = sorted(self._refused_ids)
        self._refused_ids.clear()
        return taken

    def refused(self, number: int) -> HeldSubscription | None:
        """Remove and return a refused subscription. The server keeps its own one of that name."""
        found = self.subscriptions.pop(number, None)
        if found is not None and found.name and found.change is not None:
            self._foreign[found.name] = number
        return found

    def interrupted(self) -> None:
        """Call back the callers that wait for a confirmation: there is no stream."""
        for answered in self._on_ended.values():
            answered()
        self._on_ended.clear()

    def reconcile(self, listed: Mapping[int, Listed], *, resumed: bool = False) -> Difference:
        """Reconcile with the subscriptions of the server; return the differences to send.

        Parameters
        ----------
        listed
            Subscriptions of the server, by number.
        resumed
            Whether the server continues with deltas to the earlier state, and not with snapshots.
        """
        self._next_id = max([self._next_id, *(number + 1 for number in listed)])
        self.ended_ids &= {number for number, one in listed.items() if one.spec is not None}
        ended = [number for number in listed if number in self.ended_ids]
        alive = {number: one for number, one in listed.items() if number not in self.ended_ids}
        self._foreign.clear()
        self._meet_by_name(alive)
        for number, one in alive.items():
            mine = self.subscriptions.get(number)
            if mine is not None and _is_of(mine, one):
                mine.agree(one.spec, resumed=resumed)
            else:
                self._adopt(number, one)
        self._refused_ids.clear()
        unknown = [one for number, one in self.subscriptions.items() if number not in alive]
        for mine in unknown:
            mine.forgotten()
        changed = [one for one in self.subscriptions.values() if one.change and one.id in alive]
        return Difference(ended, unknown, changed)

    def _meet_by_name(self, alive: Mapping[int, Listed]) -> None:
        """Move local subscriptions to the server's numbers for their names."""
        numbers = {one.name: number for number, one in alive.items() if one.name}
        moving = [one for one in self.subscriptions.values() if numbers.get(one.name, one.id) != one.id]
        for mine in moving:
            del self.subscriptions[mine.id]
        for mine in moving:
            number = numbers[mine.name]
            self._give_way(number)
            mine.id = number
            self.subscriptions[number] = mine

    def _adopt(self, number: int, one: Listed) -> None:
        """Adopt a subscription that another instance started."""
        self._give_way(number)
        if one.spec is not None:
            self.subscriptions[number] = HeldSubscription(self._host, number, one.spec, one.name)
        elif one.name:
            self._foreign[one.name] = number

    def _give_way(self, number: int) -> None:
        """Move a local subscription to the next free number: another instance uses this one."""
        mine = self.subscriptions.pop(number, None)
        if mine is not None:
            mine.id = self._next_id
            self._next_id += 1
            self.subscriptions[mine.id] = mine


def _is_of(mine: HeldSubscription, one: Listed) -> bool:
    """Return whether the server's subscription is the local one: by name, or without names by spec."""
    if mine.name or one.name:
        return mine.name == one.name
    wanted = mine.spec if mine.change is None else mine.change.spec
    return one.spec is not None and one.spec in (mine.spec, wanted)
