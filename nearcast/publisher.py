"""A publisher: posts objects, takes them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import grpc

from nearcast.calls import patiently
from nearcast.errors import ClosedError, RefusedError, UnavailableError
from nearcast.line import Line
from nearcast.model import GeoObject
from nearcast.v1 import publisher_service_pb2
from nearcast.wire import new_object_message

_OBJECTS_MAX = 1000
"""Objects in one request, the server's default limit: a longer list goes in several."""

_TRIES_MAX = 5
"""How often a request whose objects all have keys is sent again after a broken stream."""


class Publisher:
    """Publishes over one stream, kept open. Made by `Client.publisher`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._call: Any = None
        self._lock = asyncio.Lock()
        self._sequence = 0
        self._closed = False

    async def publish(self, objects: Iterable[GeoObject]) -> list[int]:
        """Post objects; return their ids in order, once they are on the server's disk.

        Up to 1,000 objects are accepted or refused together; a longer list goes in several requests,
        each on its own. If the connection breaks before the answer, a request is sent again when all its
        objects have keys, which makes that safe. A server that is stopping or starting is waited for: it
        says that it has done nothing.

        Raises
        ------
        RefusedError
            If an object is refused, naming it, the field, the value and the limit.
        UnavailableError
            If the server cannot be reached, or the connection broke and it is not known whether the
            objects were accepted.
        """
        messages = [new_object_message(one, f"objects[{i}]") for i, one in enumerate(objects)]
        ids: list[int] = []
        for start in range(0, max(len(messages), 1), _OBJECTS_MAX):
            chunk = messages[start : start + _OBJECTS_MAX]
            request = publisher_service_pb2.PublishRequest(objects=chunk)
            repeatable = all(message.key for message in chunk)
            ids += await self._request(request, _TRIES_MAX if repeatable else 1)
        return ids

    async def retract(self, *ids: int) -> None:
        """Take objects back, all or none.

        Raises
        ------
        RefusedError
            If one of them is not alive (any more).
        """
        request = publisher_service_pb2.RetractRequest(ids=ids)
        metadata = self._line.metadata
        await patiently(
            lambda is_returning: self._line.publishers.Retract(
                request, metadata=metadata, wait_for_ready=is_returning
            )
        )

    def rebuild(self) -> None:
        """Let go of the stream: the line is a new one."""
        self._drop_stream()

    async def close(self) -> None:
        """End the stream."""
        self._closed = True
        self._drop_stream()

    async def _request(self, request: publisher_service_pb2.PublishRequest, tries: int) -> Iterable[int]:
        async with self._lock:
            if self._closed:
                raise ClosedError("the publisher is closed")
            self._sequence += 1
            request.sequence = self._sequence
            return await patiently(lambda is_returning: self._exchange(request, is_returning), tries)

    async def _exchange(
        self,
        request: publisher_service_pb2.PublishRequest,
        wait_for_ready: bool,  # noqa: FBT001 - `patiently` says it
    ) -> Iterable[int]:
        answered = False
        try:
            call = self._call
            if call is None or call.done():  # ended between two requests: nothing is lost
                self._call = call = self._line.publishers.Publish(
                    metadata=self._line.metadata, wait_for_ready=wait_for_ready
                )
            await call.write(request)
            response = await call.read()
            if response is grpc.aio.EOF:
                raise UnavailableError("the connection was lost before the answer")
            answered = True
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise UnavailableError("the connection was lost before the answer") from None
        finally:
            if not answered:  # the stream is broken, or somebody cancelled between question and answer
                self._drop_stream()
        if response.HasField("error"):
            raise RefusedError.from_wire(response.error)
        return list(response.ids)

    def _drop_stream(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None
