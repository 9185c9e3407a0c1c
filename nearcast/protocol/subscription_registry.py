"""The subscriptions of a device, and what the server knows of them.

Numbers are the device's. What was begun or ended while there was no stream is told at the next welcome,
which lists what the server has. Where that differs:

* a subscription with a name is the one of that name, whatever its number there: it takes that number, and
  its spec is the app's;
* one without a name goes on under another number if its own has another spec there;
* one of a kind that this SDK does not know was made by another instance: it keeps its number and is left
  alone, unless the app subscribes under its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nearcast.model import Spec
from nearcast.protocol.spec_change import SpecChange
from nearcast.protocol.subscription import Host, Subscription


class Listed(NamedTuple):
    """What the server has under a number."""

    spec: Spec | None
    """None if it is of a kind that is not known here."""
    name: str = ""


class Difference(NamedTuple):
    """What the server has to be told."""

    ended: list[int]
    """Numbers of subscriptions that have ended here."""
    unknown: list[Subscription]
    """Subscriptions that it does not have."""
    changed: list[Subscription]
    """Subscriptions that are on their way to another spec than it has, or may have it already."""


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
        self._foreign: dict[str, int] = {}
        """Names that the server has, of what is no subscription here, and their numbers."""

    def begin(self, spec: Spec, name: str = "") -> Subscription:
        """Begin a subscription, under the number that the server has for its name, or a new one."""
        number = self._foreign.pop(name, None) if self._host.is_online else None
        if number is None:
            number = self._next_id
            self._next_id += 1
            subscription = Subscription(self._host, number, spec, name)
        else:
            subscription = Subscription(self._host, number, spec, name)
            subscription.change = SpecChange(spec, is_foreign=True)
        self.subscriptions[number] = subscription
        return subscription

    def named(self, name: str) -> Subscription | None:
        """Return the subscription of a name. O(subscriptions)."""
        return next((one for one in self.subscriptions.values() if one.name == name), None)

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

    def refused(self, number: int) -> Subscription | None:
        """Take a subscription that the server has refused; what it has under that name it keeps."""
        found = self.subscriptions.pop(number, None)
        if found is not None and found.name and found.change is not None:
            self._foreign[found.name] = number
        return found

    def interrupted(self) -> None:
        """Let those go who wait for the server to know: there is no stream."""
        for answered in self._on_ended.values():
            answered()
        self._on_ended.clear()

    def reconcile(self, listed: Mapping[int, Listed], *, resumed: bool = False) -> Difference:
        """Agree with the server on which subscriptions there are; return what it has to be told.

        Parameters
        ----------
        listed
            What the server has, by number.
        resumed
            Whether differences to what was sent before follow, and not snapshots.
        """
        self._next_id = max([self._next_id, *(number + 1 for number in listed)])
        self._ended_ids &= {number for number, one in listed.items() if one.spec is not None}
        ended = [number for number in listed if number in self._ended_ids]
        alive = {number: one for number, one in listed.items() if number not in self._ended_ids}
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
        """Give mine the numbers that the server has for their names."""
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
        """Take over what another instance made."""
        self._give_way(number)
        if one.spec is not None:
            self.subscriptions[number] = Subscription(self._host, number, one.spec, one.name)
        elif one.name:
            self._foreign[one.name] = number

    def _give_way(self, number: int) -> None:
        """Let mine, if there is one, go on under the next free number: another instance took this one."""
        mine = self.subscriptions.pop(number, None)
        if mine is not None:
            mine.id = self._next_id
            self._next_id += 1
            self.subscriptions[mine.id] = mine


def _is_of(mine: Subscription, one: Listed) -> bool:
    """Whether what the server has under the number of mine is mine: by name, or without one by spec."""
    if mine.name or one.name:
        return mine.name == one.name
    wanted = mine.spec if mine.change is None else mine.change.spec
    return one.spec is not None and one.spec in (mine.spec, wanted)
