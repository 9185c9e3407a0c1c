"""A witness at every device: it sees each message before the SDK does, and objects."""

from __future__ import annotations

from typing import Any

from nearcast import Device, NearcastError
from tests.chaos.published_objects import PublishedObjects


class Watch:
    """Looks over the shoulder of one device, through all its streams.

    What it calls a violation: a version that goes backwards or leaves one out, an object that nobody
    published, a subscription that was acknowledged and that the server no longer knows, one that has
    ended and is back.

    Parameters
    ----------
    device
        Whom to watch, from its first subscription on.
    published
        What has been published.
    violations
        Where to write what is wrong.
    """

    def __init__(self, device: Device, published: PublishedObjects, violations: list[str]) -> None:
        self._name = device.id
        self._published = published
        self._violations = violations
        self._known: set[int] = set()
        self._ended: set[int] = set()
        self.deltas = 0
        self._is_deleted = False
        session = device._session
        self._versions = session._sequence
        self._receive, session.receive = session.receive, self._look
        self._take, self._versions.take = self._versions.take, self._look_at_version

    def ending(self, subscription_id: int) -> None:
        """Note that the device ends a subscription: until the server says so both may be."""
        self._known.discard(subscription_id)

    def deleting(self) -> None:
        """Note that the device is being deleted: from now on the server may know nothing of it."""
        self._is_deleted = True

    def _look(self, response: Any) -> None:
        before = self._versions.version
        match response.WhichOneof("event"):
            case "delta":
                self._look_at_delta(response.delta)
            case "welcome":
                listed = {one.subscription_id for one in response.welcome.subscriptions}
                for number in self._known - listed if not self._is_deleted else ():
                    self._object(f"subscription {number} was acknowledged and is lost")
                for number in self._ended & listed:
                    self._object(f"subscription {number} has ended and is back")
            case "unsubscribed":
                self._ended.add(response.unsubscribed.subscription_id)
                self._known.discard(response.unsubscribed.subscription_id)
        self._receive(response)
        if self._versions.version < before:
            self._object(f"version {self._versions.version} after {before}")

    def _look_at_delta(self, delta: Any) -> None:
        self.deltas += 1
        if not self._device_has(delta.subscription_id):
            return
        self._known.add(delta.subscription_id)
        for entry in delta.add:
            if bytes(entry.object.payload) not in self._published.payloads:
                self._object(f"object {entry.object.id} was never published")

    def _device_has(self, subscription_id: int) -> bool:
        return subscription_id in self._receive.__self__.subscriptions

    def _look_at_version(self, version: int, *, is_snapshot: bool) -> bool:
        try:
            return self._take(version, is_snapshot=is_snapshot)
        except NearcastError as error:
            self._object(str(error))
            raise

    def _object(self, text: str) -> None:
        self._violations.append(f"{self._name}: {text}")
