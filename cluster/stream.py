"""A stream of NATS JetStream: append to it, and read it in order. What a log and keys have in common.

Operations: append one round trip, with three replicas to two of them; read by push, so that an idle
reader costs a heartbeat a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from cluster.log import PATIENCE_S, LogConflictError, LogError, LogUnavailableError

_log = logging.getLogger(__name__)

MESSAGE_ID = "Nats-Msg-Id"
"""The header of a repeated message: the stream accepts one message of an id in two minutes."""
LAST_SEQUENCE = "Nats-Expected-Last-Subject-Sequence"
LAST_SEQUENCE_OF = "Nats-Expected-Last-Subject-Sequence-Subject"
TTL = "Nats-TTL"
BATCH_MAX = 1_000
"""Messages of a batch."""

_REQUEST_S = 3.0
"""How long to wait for a response; an election takes longer, and the request is repeated."""
_PAUSE_S = 0.1
_HEARTBEAT_S = 1.0
_SILENCE_S = 3.5 * _HEARTBEAT_S
"""After this silence a reader requests its messages again."""
_INACTIVE_S = 30.0
"""After this time a server forgets a reader that is gone."""
_UNLIMITED: Any = None
"""The library's own time limits may swallow a cancellation before Python 3.12."""
_SECOND_NS = 1_000_000_000
_DUPLICATES_S = 120

_UNAVAILABLE = 503
_NO_STREAM = 10059
_OTHER_SEQUENCE = 10071
"""Error of a message whose condition does not hold."""
_TRY_AGAIN = (10158, 10164, 10167)
"""Errors of a message whose first copy is still on its way, or another one that may change whether its
condition holds; and of one too many at a time."""
_UNFINISHED_BATCH = (10175, 10176)
"""Errors of a batch of which some messages did not arrive: it is sent again as a whole."""
_REPEATED_BATCH = 10201
"""Numbers of errors."""

_T = TypeVar("_T")

FAILURES = (nats.errors.Error, TimeoutError, LogUnavailableError)
"""Failures after which a request is repeated."""


class Content(NamedTuple):
    """A message to append."""

    subject: str
    data: bytes
    headers: Mapping[str, str] = {}


class Stream:
    """A stream.

    Parameters
    ----------
    client
        Connected.
    name
        Its name.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def is_connected(self) -> bool:
        """Whether a server can be reached."""
        return bool(self._client.is_connected)

    # -- append ----------------------------------------------------------------------------------

    async def append(self, contents: Sequence[Content]) -> int:
        """Append messages, all or none; return the sequence of the last one when it is durable.

        A request without response is repeated; the stream recognises it by its id. The sequence of a
        repeated batch is not known; a later one is returned.

        Parameters
        ----------
        contents
            At most `BATCH_MAX` messages of at most 1 MiB.

        Raises
        ------
        LogConflictError
            If a condition in the headers does not hold.
        LogUnavailableError
            If there was no response in time: the messages may be in the stream or not.
        LogError
            If the stream refuses them.
        """
        identity = {MESSAGE_ID: secrets.token_hex(16)}
        return await patiently(lambda: self._append_once(contents, identity))

    async def _append_once(self, contents: Sequence[Content], identity: Mapping[str, str]) -> int:
        last = contents[-1]
        if len(contents) == 1:
            return await self._acknowledged(last, {**identity, **last.headers})
        batch = {"Nats-Batch-Id": secrets.token_hex(16)}
        for number, (subject, data, headers) in enumerate(contents[:-1], 1):
            first = identity if number == 1 else {}
            numbered = {**headers, **first, **batch, "Nats-Batch-Sequence": str(number)}
            await self._client.publish(subject, data, headers=numbered)
        end = {**batch, "Nats-Batch-Sequence": str(len(contents)), "Nats-Batch-Commit": "1"}
        return await self._acknowledged(last, {**last.headers, **end})

    async def _acknowledged(self, content: Content, headers: dict[str, str]) -> int:
        found = await self._response(content.subject, content.data, headers)
        error = found.get("error")
        if error is None:
            return int(found["seq"])
        code, text = error.get("err_code"), error.get("description")
        if code == _OTHER_SEQUENCE:
            raise LogConflictError(f"the log refuses a message: {text}")
        if code == _REPEATED_BATCH:
            return (await self._bounds_once())[1]
        if error.get("code") == _UNAVAILABLE or code in (*_TRY_AGAIN, *_UNFINISHED_BATCH):
            raise LogUnavailableError(text)
        raise LogError(f"the log refuses a message: {text}")

    # -- read ------------------------------------------------------------------------------------

    async def deliveries(self, after: int, subjects: Sequence[str] = ()) -> AsyncGenerator[Msg, None]:
        """Yield the messages after a sequence in order, each once, and wait for further ones.

        Parameters
        ----------
        after
            The sequence.
        subjects
            Yield messages of these subjects only, which may have wildcards; all by default.
        """
        has_failed = False
        while True:
            try:
                async with contextlib.aclosing(self._delivered(after, subjects)) as messages:
                    async for message in messages:
                        after, has_failed = message.metadata.sequence.stream, False
                        yield message
            except FAILURES as error:
                if not has_failed:
                    _log.info("the log is read again from sequence %d: %r", after + 1, error)
                has_failed = True
                await asyncio.sleep(_PAUSE_S)

    async def _delivered(self, after: int, subjects: Sequence[str]) -> AsyncGenerator[Msg, None]:
        """Yield messages, until one was lost on its way or nothing comes."""
        if not self.is_connected:  # the library would subscribe when there is a connection again
            raise LogUnavailableError("no server of the log can be reached")
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        name = ""
        try:
            name = await self._begin_delivery(inbox, after + 1, subjects)
            count = 0
            while True:
                async with asyncio.timeout(_SILENCE_S):
                    message = await subscription.next_msg(_UNLIMITED)
                if await self._is_status(message, count):
                    continue
                count += 1
                if message.metadata.sequence.consumer != count:
                    return
                yield message
        finally:
            await self._end_delivery(subscription, name)

    async def _begin_delivery(self, inbox: str, first: int, subjects: Sequence[str]) -> str:
        """Let the log send messages; return the name of the reader."""
        options = {
            "deliver_subject": inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": first,
            "ack_policy": "none",
            "max_deliver": 1,
            "flow_control": True,
            "idle_heartbeat": int(_HEARTBEAT_S * _SECOND_NS),
            "inactive_threshold": int(_INACTIVE_S * _SECOND_NS),
            "mem_storage": True,
            "num_replicas": 1,
        }
        if subjects:
            options["filter_subjects"] = list(subjects)
        found = await self._api("CONSUMER.CREATE", {"stream_name": self._name, "config": options})
        return str(found["name"])

    async def _end_delivery(self, subscription: Subscription, name: str) -> None:
        """End a reader; if that fails, the log forgets it after a while."""
        with contextlib.suppress(nats.errors.Error):
            await subscription.unsubscribe()
            if name:
                subject = f"$JS.API.CONSUMER.DELETE.{self._name}.{name}"
                await self._client.publish(subject)

    async def _is_status(self, message: Msg, count: int) -> bool:
        """Respond to a message of the flow control; return whether it is one, or a heartbeat.

        Raises
        ------
        LogUnavailableError
            If a heartbeat shows that messages are lost.
        """
        headers = message.headers or {}
        if headers.get("Status") != "100":
            return False
        reply = message.reply or headers.get("Nats-Consumer-Stalled")
        if reply:
            await self._client.publish(reply)
        if int(headers.get("Nats-Last-Consumer", "0")) > count:
            raise LogUnavailableError("messages were lost on their way")
        return True

    # -- the stream itself -----------------------------------------------------------------------

    async def end(self) -> int:
        """Return the last sequence; 0 for an empty stream.

        Raises
        ------
        LogUnavailableError
            If the log does not respond in time.
        """
        _, last = await self.bounds()
        return last

    async def bounds(self) -> tuple[int, int]:
        """Return the first and the last sequence; the first is greater if there is no message.

        Raises
        ------
        LogUnavailableError
            If the log does not respond in time.
        """
        return await patiently(self._bounds_once)

    async def _bounds_once(self) -> tuple[int, int]:
        state = (await self.description())["state"]
        first, last = int(state["first_seq"]), int(state["last_seq"])
        return (first, last) if state["messages"] else (last + 1, last)

    async def description(self) -> dict[str, Any]:
        """Return what the servers know of the stream: `config`, `state` and `cluster`.

        Raises
        ------
        LogUnavailableError
            If the log does not respond.
        """
        return await self._once("STREAM.INFO", {})

    async def time_s(self, sequence: int) -> float:
        """Return when the stream accepted a message, in seconds since 1970.

        Raises
        ------
        LogUnavailableError
            If the log does not respond.
        LogError
            If it has no such message.
        """
        found = await self._once("STREAM.MSG.GET", {"seq": sequence})
        return datetime.fromisoformat(found["message"]["time"]).timestamp()

    async def purge(self, until: int) -> None:
        """Delete the messages up to a sequence. It can be repeated.

        Raises
        ------
        LogUnavailableError
            If the log does not respond.
        """
        await self._once("STREAM.PURGE", {"seq": until + 1})

    async def exists(self) -> bool:
        """Return whether there is such a stream.

        Raises
        ------
        LogUnavailableError
            If the log does not respond in time.
        """
        try:
            await patiently(self.description)
        except _NoStreamError:
            return False
        return True

    async def _once(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Call the API of JetStream, and do not repeat it."""
        try:
            return await self._api(name, request)
        except (nats.errors.Error, TimeoutError) as error:
            raise LogUnavailableError(f"the log does not respond: {error!r}") from error

    async def made(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Make the stream unless it exists; return its description.

        Raises
        ------
        LogUnavailableError
            If the log does not respond in time.
        LogError
            If it cannot be made.
        """
        return await patiently(lambda: self._made_once(settings))

    async def _made_once(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        with contextlib.suppress(_NoStreamError):
            return await self._api("STREAM.INFO", {})
        common = {
            "name": self._name,
            "storage": "file",
            "retention": "limits",
            "duplicate_window": _DUPLICATES_S * _SECOND_NS,
            "allow_atomic": True,
        }
        return await self._api("STREAM.CREATE", {**common, **settings})

    async def _api(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Call the API of JetStream for the stream.

        Raises
        ------
        LogUnavailableError
            If there is no leader now.
        LogError
            If it responds with another error.
        """
        data = json.dumps(request).encode()
        found = await self._response(f"$JS.API.{name}.{self._name}", data)
        error = found.get("error")
        if error is None:
            return found
        if error.get("err_code") == _NO_STREAM:
            raise _NoStreamError
        if error.get("code") == _UNAVAILABLE:
            raise LogUnavailableError(error.get("description"))
        raise LogError(f"the log refuses {name} of {self._name}: {error.get('description')}")

    async def _response(
        self, subject: str, data: bytes, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Send a request; return the JSON of the response. Raises TimeoutError if there is none."""
        async with asyncio.timeout(_REQUEST_S):
            response = await self._client.request(subject, data, timeout=_UNLIMITED, headers=headers)
        found: dict[str, Any] = json.loads(response.data)
        return found


class _NoStreamError(LogError):
    """The stream does not exist."""


async def patiently(request: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat a request until there is a response.

    Raises
    ------
    LogUnavailableError
        If there is none in `PATIENCE_S`, or the connection has been closed.
    """
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await request()
        except FAILURES as error:
            is_closed = isinstance(error, nats.errors.ConnectionClosedError)
            if is_closed or time.monotonic() > end_s:
                raise LogUnavailableError(f"the log does not respond: {error!r}") from error
        await asyncio.sleep(_PAUSE_S)
