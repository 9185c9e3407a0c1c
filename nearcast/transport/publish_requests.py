"""The requests of a publish stream and their outcomes, without I/O.

A request gets a response; or the server certainly did not process it, because the stream ended before it
was sent, or because the server sent `GoAway` without having admitted it. The outcome of any other request
is unknown.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from nearcast.errors import NearcastError, RefusedError, UnavailableError
from nearcast.transport.calls import UnsentError
from nearcast.v1 import publisher_service_pb2, streams_pb2

Request = publisher_service_pb2.PublishRequest
Response = publisher_service_pb2.PublishResponse
Failure = Callable[[], NearcastError]

_Answer = asyncio.Future[Response]


def lost() -> NearcastError:
    """Return the error of a request whose outcome is unknown."""
    return UnavailableError("the connection was lost before the response")


def unsent() -> NearcastError:
    """Return the error of a request that was not sent."""
    return UnsentError("the connection was lost before the request")


class PublishRequests:
    """The requests of one stream, in the order of sending and of responses."""

    def __init__(self) -> None:
        self.is_open = True
        """Whether requests may still be enqueued."""
        self._unsent: deque[tuple[Request, _Answer]] = deque()
        self._unanswered: deque[_Answer] = deque()
        self._sent_count = 0
        self._sending: _Answer | None = None
        self._failure: Failure | None = None

    def enqueue(self, request: Request) -> _Answer:
        """Enqueue a request; return a future of its response.

        Raises
        ------
        UnsentError
            If the stream accepts no more requests.
        """
        if not self.is_open:
            raise unsent()
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._unsent.append((request, answer))
        return answer

    def dequeue(self) -> Request | None:
        """Return the next request to send, or None. The caller then calls a `mark_` method."""
        while self._unsent:
            request, answer = self._unsent.popleft()
            if answer.done():  # the caller has given up
                continue
            self._sent_count += 1
            request.sequence = self._sent_count
            self._unanswered.append(answer)  # the response may arrive before `mark_sent`
            self._sending = answer
            return request
        return None

    def mark_sent(self) -> None:
        """Record that the last dequeued request has been sent."""
        if self._failure is not None and self._sending is not None:
            _fail(self._sending, self._failure)
        self._sending = None

    def mark_unsent(self, failure: Failure) -> None:
        """Record that the last dequeued request could not be sent: the stream has ended."""
        if self._sending is not None:
            _fail(self._sending, failure)
        self._sending = None
        self._stop()

    def resolve(self, response: Response) -> None:
        """Resolve the oldest request without a response."""
        answer = self._unanswered.popleft()
        if not answer.done():
            answer.set_result(response)

    def go_away(self, message: streams_pb2.GoAway) -> None:
        """Fail the requests that the server has not admitted; the others still get their responses."""
        for _ in range(min(len(self._unanswered), self._sent_count - message.admitted_count)):
            _fail(self._unanswered.pop(), lambda: RefusedError.from_wire(message.error))
        self._stop()

    def end(self, failure: Failure) -> None:
        """Record the end of the stream: fail the requests without a response."""
        self._failure = failure
        for answer in self._unanswered:
            if answer is not self._sending:  # `mark_sent` or `mark_unsent` follows for this one
                _fail(answer, failure)
        self._stop()

    def _stop(self) -> None:
        """Accept no more requests; fail the requests that were not sent."""
        self.is_open = False
        while self._unsent:
            _fail(self._unsent.popleft()[1], unsent)


def _fail(answer: _Answer, failure: Failure) -> None:
    if not answer.done():
        answer.set_exception(failure())
