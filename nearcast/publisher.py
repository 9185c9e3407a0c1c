"""A publisher: posts objects, takes them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import grpc

from nearcast.errors import ClosedError, RefusedError
from nearcast.model import GeoObject
from nearcast.protocol.converters import new_object_message, objects_listed, retract_request
from nearcast.transport.calls import UnsentError, patiently, refusal
from nearcast.transport.channel import Channel
from nearcast.transport.publish_stream import PublishStream
from nearcast.v1 import objects_pb2, publisher_service_pb2

_OBJECTS_MAX = 1000
"""Objects in one request, the server's default limit: a longer list goes in several."""

_REQUEST_BYTES_MAX = 4_000_000
"""Bytes of objects in one request, a little less than the server takes."""

_TRIES_MAX = 5
"""How often a request whose objects all have keys is sent again after a broken stream."""


_ACCEPTED = "nearcast-accepted"
"""In the initial metadata of a stream that the server has taken on."""


class Publisher:
    """Publishes over one stream, kept open. Made by `Client.publisher`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stream: PublishStream | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._is_known = False  # the server has answered before: it is worth waiting for

    async def publish(self, objects: GeoObject | Iterable[GeoObject]) -> list[int]:
        """Post objects; return their ids in order, once they are on the server's disk.

        Up to 1,000 objects, of 4 MB at most, are accepted or refused together; a longer list goes in
        several requests, each on its own. Many tasks may publish at once: their requests go out as they
        come, and those that meet in the server share the cost of a commit.

        If the connection breaks before the answer, a request is sent again when all its objects have
        keys, which makes that safe. A request that comes too early (`Reason.RATE_LIMITED`) is sent again
        when the server has said. A server that is stopping or starting, or that is gone before it has
        seen the request, is waited for, up to a minute.

        Raises
        ------
        RefusedError
            If an object is refused, naming it, the field, the value and the limit.
        UnavailableError
            If the server cannot be reached, or the connection broke and it is not known whether the
            objects were accepted. A publisher that has not published before does not wait for a server
            that cannot be reached.
        """
        self._require_open()
        new = objects_listed(objects)
        messages = [new_object_message(one, f"objects[{i}]") for i, one in enumerate(new)]
        ids: list[int] = []
        for chunk in _requests_of(messages):
            request = publisher_service_pb2.PublishRequest(objects=chunk)
            repeatable = all(message.key for message in chunk)
            ids += await self._request(request, _TRIES_MAX if repeatable else 1)
        return ids

    async def retract(self, *ids: int, key: str | None = None, keys: Iterable[str] | None = None) -> None:
        """Take objects back, all or none.

        Parameters
        ----------
        ids
            Their ids, as `publish` returned them.
        key, keys
            The publisher's own keys (`GeoObject.key`) of further objects: one, or several.

        Raises
        ------
        RefusedError
            If one of them is not alive (any more), or is another publisher's, naming it.
        """
        self._require_open()
        request = retract_request(ids, key, keys)

        async def call(is_returning: bool) -> Any:  # noqa: ANN401, FBT001
            metadata = await self._channel.metadata()
            retract = self._channel.publishers.Retract
            self._require_open()
            return await retract(request, metadata=metadata, wait_for_ready=is_returning)

        await patiently(
            call,
            can_renew_token=self._channel.can_renew_token,
            is_encrypted=self._channel.is_encrypted,
        )

    def rebuild(self) -> None:
        """Let go of the stream: the line is a new one."""
        self._drop_stream()

    async def close(self) -> None:
        """End the stream."""
        self._closed = True
        self._drop_stream()

    async def _request(self, request: publisher_service_pb2.PublishRequest, tries: int) -> Iterable[int]:
        return await patiently(
            lambda is_returning: self._exchange(request, is_returning),
            tries,
            is_returning=self._is_known,
            can_renew_token=self._channel.can_renew_token,
            is_encrypted=self._channel.is_encrypted,
        )

    async def _exchange(
        self,
        request: publisher_service_pb2.PublishRequest,
        wait_for_ready: bool,  # noqa: FBT001 - `patiently` says it
    ) -> Iterable[int]:
        """Ask once; on another stream if the first turns out to have ended before."""
        stream = await self._opened(wait_for_ready)
        try:
            response = await stream.ask(request)
        except UnsentError:
            response = await (await self._opened(wait_for_ready)).ask(request)
        self._is_known = True
        if response.HasField("error"):
            raise RefusedError.from_wire(response.error)
        return response.ids

    async def _opened(self, wait_for_ready: bool) -> PublishStream:  # noqa: FBT001
        """Return the stream, a new one if the last has ended. One of many that ask opens it."""
        async with self._opening:
            self._require_open()
            if self._stream is None or self._stream.has_ended:
                is_encrypted = self._channel.is_encrypted
                try:
                    call = await self._accepted(wait_for_ready)
                    self._stream = PublishStream(call, is_encrypted=is_encrypted)
                except asyncio.CancelledError:
                    _require_wanted()
                    raise UnsentError("the connection was lost before the request") from None
                except asyncio.InvalidStateError as error:
                    raise UnsentError(f"the server cannot be reached: {error}") from None
                except grpc.aio.AioRpcError as error:
                    failure = refusal(error, is_encrypted=is_encrypted)
                    if isinstance(failure, RefusedError):
                        raise failure from None
                    raise UnsentError(failure.message, failure.hint) from None
            return self._stream

    async def _accepted(self, wait_for_ready: bool) -> Any:  # noqa: ANN401, FBT001
        """Open a stream and wait until the server has taken it on: then it answers, or says why not."""
        metadata = await self._channel.metadata()
        self._require_open()
        call = self._channel.publishers.Publish(metadata=metadata, wait_for_ready=wait_for_ready)
        is_accepted = False
        try:
            is_accepted = _ACCEPTED in (await call.initial_metadata() or ())
            if not is_accepted:
                await call.read()  # raises why
        finally:
            if not is_accepted:
                call.cancel()
        return call

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the publisher is closed")

    def _drop_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None


_Objects = list[objects_pb2.NewObject]


def _requests_of(messages: Sequence[objects_pb2.NewObject]) -> Iterator[_Objects]:
    """Yield the objects of each request; none are a request, too, which is refused."""
    chunk: _Objects = []
    size = 0
    for message in messages:
        more = message.ByteSize()
        if chunk and (len(chunk) == _OBJECTS_MAX or size + more > _REQUEST_BYTES_MAX):
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += more
    yield chunk


def _require_wanted() -> None:
    """Raise CancelledError if it was the caller who cancelled, and not a stream that was let go."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
