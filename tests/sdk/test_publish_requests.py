"""The requests of a publish stream in the SDK: answered, not carried out, or of unknown outcome."""

from __future__ import annotations

import random
from collections import deque

import pytest

from nearcast.errors import RefusedError
from nearcast.transport.calls import UnsentError
from nearcast.transport.publish_requests import PublishRequests, lost, unsent
from nearcast.v1 import errors_pb2, publisher_service_pb2, streams_pb2


def go_away(count):
    error = errors_pb2.Error(reason=errors_pb2.ERROR_REASON_DRAINING)
    return streams_pb2.GoAway(error=error, admitted_count=count)


class Stream:
    """Requests, and what became of each."""

    def __init__(self, count=0):
        self.requests = PublishRequests()
        self.answers = [self.enqueue() for _ in range(count)]

    def enqueue(self):
        return self.requests.enqueue(publisher_service_pb2.PublishRequest())

    def send(self, count):
        """Send so many; return their numbers on the stream."""
        found = []
        for _ in range(count):
            found.append(self.requests.dequeue().sequence)
            self.requests.mark_sent()
        return found

    def response(self, *sequences):
        for sequence in sequences:
            self.requests.resolve(publisher_service_pb2.PublishResponse(sequence=sequence))

    def outcomes(self):
        return [outcome(one) for one in self.answers]


def outcome(response):
    if not response.done():
        return "waits"
    error = response.exception()
    if error is None:
        return response.result().sequence
    if isinstance(error, RefusedError):
        return error.reason.name
    return "unsent" if isinstance(error, UnsentError) else "unknown"


async def test_responses_belong_to_requests_in_their_order():
    stream = Stream(4)
    assert stream.send(3) == [1, 2, 3]
    stream.answer(1, 2)
    assert stream.outcomes() == [1, 2, "waits", "waits"]


async def test_a_request_of_a_cancelled_caller_is_not_sent():
    stream = Stream(3)
    stream.answers[1].cancel()
    assert stream.send(2) == [1, 2]
    assert stream.requests.dequeue() is None
    stream.answer(1, 2)
    assert outcome(stream.answers[2]) == 2


async def test_go_away_fails_requests_that_the_server_has_not_admitted():
    stream = Stream(6)
    stream.send(4)
    stream.answer(1)
    stream.requests.go_away(go_away(2))
    assert stream.outcomes() == [1, "waits", "DRAINING", "DRAINING", "unsent", "unsent"]
    assert not stream.requests.is_open
    assert stream.requests.dequeue() is None, "nothing more is sent on it"
    with pytest.raises(UnsentError):
        stream.enqueue()
    stream.answer(2)
    stream.requests.end(lost)
    assert stream.outcomes() == [1, 2, "DRAINING", "DRAINING", "unsent", "unsent"]


@pytest.mark.parametrize(("count", "expected"), [(1, "DRAINING"), (2, "waits")])
async def test_a_request_that_is_being_sent_when_go_away_comes(count, expected):
    """The server counts what it has read, not what the client knows to have been sent."""
    stream = Stream(2)
    stream.send(1)
    assert stream.requests.dequeue().sequence == 2
    stream.requests.go_away(go_away(count))
    assert stream.outcomes() == ["waits", expected]
    stream.requests.mark_sent()
    stream.answer(*range(1, count + 1))
    assert stream.outcomes() == [1, 2 if count == 2 else "DRAINING"]


async def test_admitted_requests_without_a_response_at_the_end_are_unknown():
    stream = Stream(3)
    stream.send(3)
    stream.requests.go_away(go_away(2))
    stream.requests.end(lost)
    assert stream.outcomes() == ["unknown", "unknown", "DRAINING"]


async def test_a_broken_stream_leaves_sent_requests_unknown():
    stream = Stream(4)
    stream.send(3)
    stream.answer(1)
    stream.requests.end(lost)
    assert stream.outcomes() == [1, "unknown", "unknown", "unsent"]


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_request_that_is_being_sent_when_the_stream_breaks_waits_for_the_sender(is_sent):
    stream = Stream(1)
    stream.requests.dequeue()
    stream.requests.end(lost)
    assert stream.outcomes() == ["waits"]
    if is_sent:
        stream.requests.mark_sent()
    else:
        stream.requests.mark_unsent(unsent)
    assert stream.outcomes() == ["unknown" if is_sent else "unsent"]


@pytest.mark.parametrize("seed", range(50))
async def test_none_is_carried_out_twice_and_none_waits_for_ever(seed):
    """The server follows the protocol; streams may break at any time."""
    chance = random.Random(seed)
    waiting, done, answered = list(range(30)), [], set()
    while waiting:
        stream = Stream(len(waiting))
        on_wire, admitted, count, is_away = deque(), deque(), 0, False
        for _ in range(chance.randint(0, 200)):
            action = chance.choice(["send", "read", "answer", "answer", "away"])
            if action == "send" and (request := stream.requests.dequeue()) is not None:
                on_wire.append(request.sequence)
                stream.requests.mark_sent()
            elif action == "read" and on_wire and not is_away:
                admitted.append(on_wire.popleft())
                count += 1
                done.append(waiting[admitted[-1] - 1])
            elif action == "answer" and admitted:
                answered.add(waiting[admitted[0] - 1])
                stream.answer(admitted.popleft())
            elif action == "away" and not is_away and chance.random() < 0.1:
                is_away = True
                stream.requests.go_away(go_away(count))
        stream.requests.end(lost)
        outcomes = dict(zip(waiting, stream.outcomes(), strict=True))
        assert all((number in answered) is isinstance(one, int) for number, one in outcomes.items())
        waiting = [number for number, one in outcomes.items() if one in ("unsent", "DRAINING")]
        assert not set(waiting) & set(done), "they are sent again"
        unknown = [number for number, one in outcomes.items() if one == "unknown"]
        assert not is_away or set(unknown) <= set(done), "what was not admitted is known"
        assert "waits" not in outcomes.values()
    assert len(done) == len(set(done))
