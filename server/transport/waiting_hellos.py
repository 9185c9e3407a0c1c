"""Hellos of a stream that wait for an owner of their slot, while the stream is read on.

What a device sends after such a hello waits behind it. Other devices of the stream are not delayed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from nearcast.v1.device_service_pb2 import AttachRequest
from server.core.placement import Placement

Submit = Callable[[str, AttachRequest | None], Awaitable[None]]

_WAITING_MAX = 16
"""Requests of a device that wait; the stream is not read beyond them."""


class WaitingHellos:
    """The hellos of one stream that wait.

    Parameters
    ----------
    placement
        Knows whether a device has a server.
    submit
        Submits a request that has waited.
    """

    def __init__(self, placement: Placement, submit: Submit) -> None:
        self._placement = placement
        self._submit = submit
        self._waiting: dict[str, tuple[deque[AttachRequest | None], asyncio.Task[None]]] = {}
        """By device: the requests that wait, and the task that submits them."""

    async def keep(self, device_id: str, request: AttachRequest | None) -> bool:
        """Return whether a request waits; if not, the caller submits it.

        Parameters
        ----------
        device_id
            The device.
        request
            The next request of the device; None for its end.
        """
        found = self._waiting.get(device_id)
        if found is None:
            is_hello = request is not None and request.HasField("hello")
            if not is_hello or self._placement.is_settled(device_id):
                return False
            requests = deque([request])
            settling = asyncio.create_task(self._settle(device_id, requests))
            self._waiting[device_id] = requests, settling
            return True
        requests, settling = found
        if len(requests) < _WAITING_MAX:
            requests.append(request)
            return True
        await settling
        return False

    async def _settle(self, device_id: str, requests: deque[AttachRequest | None]) -> None:
        try:
            await self._placement.settled(device_id)
            while requests:
                await self._submit(device_id, requests.popleft())
        finally:
            del self._waiting[device_id]

    def close(self) -> None:
        """Discard what waits: the stream has ended."""
        for _, settling in list(self._waiting.values()):
            settling.cancel()
