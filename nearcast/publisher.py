"""A publisher: publishes and retracts objects."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import grpc

from nearcast.errors import ClosedError, NearcastError, RefusedError
from nearcast.limits import DEFAULT_LIMITS
from nearcast.model import GeoObject
from nearcast.protocol.converters import new_object, objects_listed, retract_request
from nearcast.transport.calls import UnsentError, patiently, refusal
from nearcast.transport.cancellation import is_cancelled
from nearcast.transport.channel import Channel
from nearcast.transport.publish_stream import PublishStream
from nearcast.transport.servers import Servers
from nearcast.v1 import objects_pb2, publisher_service_pb2
from nearcast.wire.errors import refusal_from
from nearcast.wire.objects import new_object_message

_OBJECTS_MAX = DEFAULT_LIMITS.objects_per_request_max
"""Objects in one request, the server's default limit. A longer list is sent in several requests."""

_REQUEST_BYTES_MAX = 4_000_000
"""Bytes of objects in one request, a little less than the server's limit."""

_TRIES_MAX = 5
"""Attempts for a request whose objects all have keys, if the stream breaks."""

_OBJECT = re.compile(r"^objects\[(\d+)\]")
"""An object of a request, at the start of a field or a message."""

_ACCEPTED = "nearcast-accepted"
"""Key in the initial metadata of a stream that the server has accepted."""


class Publisher:
    """Publishes objects over one stream, which it keeps open. `Client.publisher` creates it.

    It is an asynchronous context manager, which calls `close` at the end of the block. `Client.close`
    closes it as well.

    Parameters
    ----------
    servers
        The servers that the client knows.
    on_close
        Called when the publisher is closed.
    """

    def __init__(self, servers: Servers, on_close: Callable[[Publisher], None]) -> None:
        self._servers = servers
        self._on_close = on_close
        self._stream: PublishStream | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._is_known = False  # the server has responded before, so the publisher waits for it

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<nearcast.Publisher to {self._servers.target!r}{state}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def publish(self, objects: GeoObject | Iterable[GeoObject]) -> list[int]:
        """Publish objects; return their ids in order, once the objects are on the server's disk.

        The server accepts or refuses up to 1,000 objects of 4 MB together. The SDK sends a longer list in
        several requests, each of which is accepted or refused separately. Many tasks may publish at the
        same time. Their requests are sent at once, and the requests that the server processes together
        share the cost of a commit.

        If the connection breaks before the response, the SDK retries a request whose objects all have
        keys, which make the retry safe. It retries a request that came too early (`Reason.RATE_LIMITED`)
        at the time that the server gives. It waits up to a minute for a server that is stopping or
        starting, or that vanished before it received the request. With several servers it uses another
        one instead.

        Parameters
        ----------
        objects
            An object, or several.

        Returns
        -------
        list of int
            The server's ids of the objects.

        Raises
        ------
        RefusedError
            If the server refuses an object; the error names the object by its place in `objects`, the
            field, the value and the limit.
        UnavailableError
            If the server cannot be reached, or the connection broke and it is unknown whether the server
            accepted the objects. A publisher that has not published before does not wait for a server
            that cannot be reached.

        Examples
        --------
        ::

            offer = GeoObject({"tea"}, lon=14.5, lat=35.9, ttl_s=600, payload=b"tea for two", key="tea-1")
            (object_id,) = await publisher.publish(offer)
        """
        self._require_open()
        new = objects_listed(objects)
        messages = [new_object_message(new_object(one, f"objects[{i}]")) for i, one in enumerate(new)]
        ids: list[int] = []
        begin = 0
        for chunk in _requests_of(messages):
            request = publisher_service_pb2.PublishRequest(objects=chunk)
            repeatable = all(message.key for message in chunk)
            try:
                ids += await self._request(request, _TRIES_MAX if repeatable else 1)
            except RefusedError as error:
                raise _counted_from(begin, error) from None
            begin += len(chunk)
        return ids

    async def retract(self, *ids: int, key: str | None = None, keys: Iterable[str] | None = None) -> None:
        """Retract objects, all or none.

        Parameters
        ----------
        ids
            Ids of objects, from `publish`.
        key, keys
            The publisher's keys (`GeoObject.key`) of further objects: one key, or several.

        Raises
        ------
        RefusedError
            If one of the objects is not alive, or belongs to another publisher; the error names it.

        Examples
        --------
        ::

            await publisher.retract(object_id)
            await publisher.retract(key="tea-1")
        """
        self._require_open()
        request = retract_request(ids, key, keys)

        async def call(is_returning: bool) -> Any:  # noqa: ANN401, FBT001
            self._require_open()
            return await self._servers.call(_retract, request, waits=is_returning)

        await patiently(
            call,
            can_renew_token=self._servers.can_renew_token,
            is_encrypted=self._servers.is_encrypted,
        )

    def rebuild(self) -> None:
        """Drop the stream. The client calls it after it has reconnected."""
        self._drop_stream()

    async def close(self) -> None:
        """End the stream. Objects stay published. Later calls raise `ClosedError`."""
        self._closed = True
        self._on_close(self)
        self._drop_stream()

    async def _request(self, request: publisher_service_pb2.PublishRequest, tries: int) -> Iterable[int]:
        return await patiently(
            lambda is_returning: self._exchange(request, is_returning),
            tries,
            is_returning=self._is_known,
            can_renew_token=self._servers.can_renew_token,
            is_encrypted=self._servers.is_encrypted,
        )

    async def _exchange(
        self,
        request: publisher_service_pb2.PublishRequest,
        wait_for_ready: bool,  # noqa: FBT001 - `patiently` says it
    ) -> Iterable[int]:
        """Send the request once; use another stream if the first one had ended before."""
        stream = await self._opened(wait_for_ready)
        try:
            response = await stream.ask(request)
        except UnsentError:
            response = await (await self._opened(wait_for_ready)).ask(request)
        self._is_known = True
        if response.HasField("error"):
            raise refusal_from(response.error)
        return response.ids

    async def _opened(self, wait_for_ready: bool) -> PublishStream:  # noqa: FBT001
        """Return the stream; open a new one if the last has ended. Concurrent callers share it."""
        async with self._opening:
            self._require_open()
            if self._stream is None or self._stream.has_ended:
                stream = await self._open_somewhere(wait_for_ready)
                if self._closed:
                    stream.cancel()
                self._require_open()
                self._stream = stream
            return self._stream

    async def _open_somewhere(self, wait_for_ready: bool) -> PublishStream:  # noqa: FBT001
        """Open a stream to the current server, or to the next one that can be reached."""
        for others_left in reversed(range(len(self._servers.listed))):
            channel = await self._servers.connected(waits=wait_for_ready)
            try:
                return await self._open(channel, wait_for_ready)
            except NearcastError as error:
                self._require_open()
                self._servers.failed(channel, error)
                if not (others_left and isinstance(error, UnsentError)):
                    raise
        raise AssertionError("unreachable")

    async def _open(self, channel: Channel, wait_for_ready: bool) -> PublishStream:  # noqa: FBT001
        """Open a stream.

        Raises
        ------
        RefusedError
            If the server refuses it.
        UnsentError
            If the server cannot be reached.
        """
        is_encrypted = self._servers.is_encrypted
        try:
            call = await self._accepted(channel, wait_for_ready)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise UnsentError("the connection was lost before the request") from None
        except asyncio.InvalidStateError as error:
            raise UnsentError(f"the server cannot be reached: {error}") from None
        except grpc.aio.AioRpcError as error:
            failure = refusal(error, is_encrypted=is_encrypted)
            if isinstance(failure, RefusedError):
                raise failure from None
            raise UnsentError(failure.message, failure.hint) from None
        return PublishStream(call, is_encrypted=is_encrypted)

    async def _accepted(self, channel: Channel, wait_for_ready: bool) -> Any:  # noqa: ANN401, FBT001
        """Open a stream, and wait until the server has accepted it; raise its error if it refuses."""
        metadata = await channel.metadata()
        self._require_open()
        waits = wait_for_ready and self._servers.is_only(channel)
        call = channel.publishers.Publish(metadata=metadata, wait_for_ready=waits)
        is_accepted = False
        try:
            is_accepted = _ACCEPTED in (await call.initial_metadata() or ())
            if not is_accepted:
                await call.read()  # raises the reason
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


def _retract(channel: Channel) -> Any:  # noqa: ANN401 - gRPC's
    return channel.publishers.Retract


_Objects = list[objects_pb2.NewObject]


def _requests_of(messages: Sequence[objects_pb2.NewObject]) -> Iterator[_Objects]:
    """Yield the objects of each request. An empty list is one request, which the server refuses."""
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


def _counted_from(begin: int, error: RefusedError) -> RefusedError:
    """Return the refusal of a request for the list of the caller, where its first object is `begin`."""
    if not begin or not _OBJECT.match(error.field):
        return error

    def counted(text: str) -> str:
        return _OBJECT.sub(lambda found: f"objects[{begin + int(found[1])}]", text)

    return RefusedError(
        error.reason,
        counted(error.field),
        error.value,
        error.limit,
        counted(str(error)),
        error.retry_after_ms,
        error.server,
    )
