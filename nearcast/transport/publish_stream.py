"""A stream of publish requests. They are sent at once, and responses arrive in the same order."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Any

import grpc

from nearcast.transport.calls import refusal
from nearcast.transport.publish_requests import (
    Failure,
    PublishRequests,
    Request,
    Response,
    lost,
    unsent,
)


class PublishStream:
    """One stream for many concurrent callers. A cancelled caller does not affect the others.

    Parameters
    ----------
    call
        Call of gRPC that the server has accepted.
    is_encrypted
        Whether the connection is encrypted.
    """

    def __init__(self, call: Any, *, is_encrypted: bool) -> None:  # noqa: ANN401 - gRPC has no type for it
        self._call = call
        self._refusal = partial(refusal, is_encrypted=is_encrypted)
        self._requests = PublishRequests()
        self._changed = asyncio.Event()
        self._tasks = (asyncio.create_task(self._write()), asyncio.create_task(self._read()))

    @property
    def has_ended(self) -> bool:
        """Whether the stream accepts no more requests."""
        return not self._requests.is_open

    async def ask(self, request: Request) -> Response:
        """Send a request and return its response.

        Raises
        ------
        UnsentError
            If the stream ended before the request was sent: the server has not received it.
        UnavailableError
            If the stream ended before the response, and the outcome of the request is unknown.
        RefusedError
            If the server drains and has not admitted the request, or has ended the stream with a reason:
            then it has not processed the requests without a response.
        """
        answer = self._requests.enqueue(request)
        self._changed.set()
        return await answer

    def cancel(self) -> None:
        """End the stream; waiting callers get the error of a lost connection."""
        self._call.cancel()

    async def _write(self) -> None:
        """Write requests until the stream accepts no more, then half-close."""
        requests = self._requests
        while (request := await self._next()) is not None:
            try:
                await self._call.write(request)
            except asyncio.InvalidStateError:  # the stream had ended, and `_read` has not noticed yet
                requests.mark_unsent(unsent)
            except grpc.aio.AioRpcError as error:
                requests.mark_unsent(partial(self._refusal, error))
            except asyncio.CancelledError:
                requests.mark_unsent(lost)
            else:
                requests.mark_sent()
        with contextlib.suppress(grpc.aio.InternalError):  # the stream has ended
            await self._call.done_writing()

    async def _next(self) -> Request | None:
        while (request := self._requests.dequeue()) is None and self._requests.is_open:
            self._changed.clear()
            await self._changed.wait()
        return request

    async def _read(self) -> None:
        failure: Failure = lost
        try:
            while (response := await self._call.read()) is not grpc.aio.EOF:
                if response.HasField("go_away"):
                    self._requests.go_away(response.go_away)
                    self._changed.set()
                else:
                    self._requests.resolve(response)
        except grpc.aio.AioRpcError as error:
            failure = partial(self._refusal, error)
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            pass  # the stream was cancelled
        finally:
            self._requests.end(failure)
            self._changed.set()
