"""A stream of publish requests: they go out as they come, and are answered in their order."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc

from nearcast.errors import NearcastError, UnavailableError
from nearcast.transport.calls import UnsentError, refusal
from nearcast.v1 import publisher_service_pb2

_Answer = asyncio.Future[publisher_service_pb2.PublishResponse]


def _lost() -> NearcastError:
    return UnavailableError("the connection was lost before the answer")


def _unsent() -> NearcastError:
    return UnsentError("the connection was lost before the request")


class PublishStream:
    """One stream. Many may ask at once; whoever gives up disturbs nobody else.

    Parameters
    ----------
    call
        Of gRPC, taken on by the server.
    """

    def __init__(self, call: Any) -> None:  # noqa: ANN401 - gRPC has no type for it
        self._call = call
        self._sequences = itertools.count(1)
        self._unsent: asyncio.Queue[tuple[publisher_service_pb2.PublishRequest, _Answer] | None]
        self._unsent = asyncio.Queue()
        self._unanswered: deque[_Answer] = deque()
        self._on_its_way: _Answer | None = None
        self._failure: Callable[[], NearcastError] | None = None
        self._tasks = (asyncio.create_task(self._write()), asyncio.create_task(self._read()))

    @property
    def has_ended(self) -> bool:
        """Whether it takes no more requests."""
        return self._failure is not None

    async def ask(
        self, request: publisher_service_pb2.PublishRequest
    ) -> publisher_service_pb2.PublishResponse:
        """Send a request, whose sequence is set, and wait for its answer.

        Raises
        ------
        UnsentError
            If the stream ended before the request was sent: the server has not seen it.
        UnavailableError
            If it ended before the answer, and it is not known what became of the request.
        RefusedError
            If the server ended it, saying why: what it had not answered, it has not done.
        """
        if self.has_ended:
            raise _unsent()
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._unsent.put_nowait((request, answer))
        return await answer

    def cancel(self) -> None:
        """End the stream; whoever waits is told that the connection was lost."""
        self._call.cancel()

    async def _write(self) -> None:
        while (item := await self._unsent.get()) is not None:
            request, answer = item
            if answer.done():  # nobody waits for it any more
                continue
            request.sequence = next(self._sequences)
            self._unanswered.append(answer)  # it may come before `write` returns
            self._on_its_way = answer
            try:
                await self._call.write(request)
            except asyncio.InvalidStateError:  # it had ended, and nobody has read so yet
                self._failure = self._failure or _lost
                _fail(answer, _unsent)
            except grpc.aio.AioRpcError as error:
                _fail(answer, partial(refusal, error))
            except asyncio.CancelledError:
                _fail(answer, _lost)
            self._on_its_way = None
            if self._failure is not None:
                _fail(answer, self._failure)

    async def _read(self) -> None:
        failure: Callable[[], NearcastError] = _lost
        try:
            while (response := await self._call.read()) is not grpc.aio.EOF:
                answer = self._unanswered.popleft()
                if not answer.done():
                    answer.set_result(response)
        except grpc.aio.AioRpcError as error:
            failure = partial(refusal, error)
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            pass  # it was let go of
        finally:
            self._end(failure)

    def _end(self, failure: Callable[[], NearcastError]) -> None:
        self._failure = failure
        for answer in self._unanswered:
            if answer is not self._on_its_way:  # `_write` is about to know more
                _fail(answer, failure)
        while not self._unsent.empty():
            if (item := self._unsent.get_nowait()) is not None:
                _fail(item[1], _unsent)
        self._unsent.put_nowait(None)


def _fail(answer: _Answer, failure: Callable[[], NearcastError]) -> None:
    if not answer.done():
        answer.set_exception(failure())
