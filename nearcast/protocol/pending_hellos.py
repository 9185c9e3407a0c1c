"""Hellos on a stream that wait for a response. Earlier messages belong to the previous instance.

A device may leave a fleet and attach again on the same stream, as a new instance. Messages of the server
to the previous instance are then still in transit, and may name objects and versions that the new
instance does not know. Every hello has one response, in order.

Operations: O(1).
"""

from __future__ import annotations

from collections import Counter

from nearcast.v1 import device_service_pb2

_REFUSED_HELLO = device_service_pb2.Rejection.COMMAND_HELLO


class PendingHellos:
    """Number of hellos of each device that wait for a response."""

    def __init__(self) -> None:
        self._waiting: Counter[str] = Counter()

    def sent(self, device_id: str) -> None:
        """Record that a hello has been sent."""
        self._waiting[device_id] += 1

    def is_current(self, device_id: str, response: device_service_pb2.AttachResponse) -> bool:
        """Return whether a response is for the last instance. Call it once for each response."""
        count = self._waiting.get(device_id, 0)
        if not count:
            return True
        if not _is_answer(response):
            return False
        if count > 1:
            self._waiting[device_id] = count - 1
            return False
        del self._waiting[device_id]
        return True

    def clear(self) -> None:
        """Reset for another stream."""
        self._waiting.clear()


def _is_answer(response: device_service_pb2.AttachResponse) -> bool:
    kind = response.WhichOneof("event")
    return kind == "welcome" or (kind == "rejection" and response.rejection.command == _REFUSED_HELLO)
