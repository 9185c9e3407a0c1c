"""Hellos on a stream that wait for an answer; what comes before it is for the instance before.

A device may leave a fleet and attach again on the same stream, as a new instance. What the server had
sent to the one before is still on its way then, and may name objects and versions that the new one does
not know. Every hello has one answer, in order.

Operations: O(1).
"""

from __future__ import annotations

from collections import Counter

from nearcast.v1 import device_service_pb2

_REFUSED_HELLO = device_service_pb2.Rejection.COMMAND_HELLO


class PendingHellos:
    """How many hellos of each device wait for an answer."""

    def __init__(self) -> None:
        self._waiting: Counter[str] = Counter()

    def sent(self, device_id: str) -> None:
        """Note that a hello is on its way."""
        self._waiting[device_id] += 1

    def is_current(self, device_id: str, response: device_service_pb2.AttachResponse) -> bool:
        """Whether a response is for the instance that said hello last. Each is to be asked for once."""
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
        """Begin anew, with another stream."""
        self._waiting.clear()


def _is_answer(response: device_service_pb2.AttachResponse) -> bool:
    kind = response.WhichOneof("event")
    return kind == "welcome" or (kind == "rejection" and response.rejection.command == _REFUSED_HELLO)
