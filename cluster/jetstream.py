"""The log in NATS JetStream: one stream, synced to the disks of its servers before it acknowledges.

Operations: append one round trip, with three replicas to two of them; read by push, so that an idle
reader costs a heartbeat a second.

A message of the log is at most 1 MiB. Larger ones become an atomic batch, which the stream accepts as a
whole. A repeated append is recognised by its message id for two minutes; a repeated batch is an error of
its own, which means the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from cluster.codec import Assembler, encoded, encoded_parts
from cluster.durability import require_synced
from cluster.entries import Entry
from cluster.log import LogConflictError, LogError, LogUnavailableError, Message

_log = logging.getLogger(__name__)

_CONNECT_S = 10.0
_REQUEST_S = 3.0
"""How long to wait for a response; an election takes longer, and the request is repeated."""
_APPEND_S = 15.0
"""How long to repeat an append; the election of a leader took 4 to 7 s."""
_PAUSE_S = 0.1
_HEARTBEAT_S = 1.0
_SILENCE_S = 3.5 * _HEARTBEAT_S
"""After this silence a reader requests its messages again."""
_INACTIVE_S = 30.0
"""After this time a server forgets a reader that is gone."""

_CONTENT_MAX = 1_000_000
"""Bytes of a message; the rest of 1 MiB is for headers."""
_SECOND_NS = 1_000_000_000
_DUPLICATES_S = 120

_UNAVAILABLE = 503
_NO_STREAM = 10059
_NOT_FIRST = 10071
_UNFINISHED_BATCH = (10175, 10176)
"""Errors of a batch of which some messages did not arrive: it is sent again as a whole."""
_REPEATED_BATCH = 10201
"""Numbers of errors."""


@dataclass(frozen=True, slots=True)
class JetStreamOptions:
    """The stream, and what it has to promise."""

    servers: Sequence[str]
    """Addresses of servers, as nats://host:port."""
    monitors: Sequence[str] = ()
    """Addresses of the monitoring ports of all servers that have replicas, as http://host:port."""
    stream: str = "nearcast"
    replicas: int = 3
    is_unsafe: bool = False
    """Whether a stream that does not promise durability may be used."""

    @property
    def subject(self) -> str:
        """The subject of the messages."""
        return f"{self.stream}.objects"


class JetStreamLog:
    """A log in a stream. `open_log` makes it.

    Parameters
    ----------
    client
        Connected.
    options
        The stream.
    """

    def __init__(self, client: Client, options: JetStreamOptions) -> None:
        self._client = client
        self._options = options

    async def append(self, entries: Sequence[Entry], *, is_first: bool = False) -> int:
        """Append entries as one message; see `Log.append`.

        The offset of a repeated batch is unknown; a later one is returned.
        """
        content = encoded(entries)
        headers = {"Nats-Msg-Id": secrets.token_hex(16)}
        if is_first:
            headers["Nats-Expected-Last-Sequence"] = "0"
        end_s = time.monotonic() + _APPEND_S
        while True:
            try:
                return await self._published(content, headers)
            except (nats.errors.Error, TimeoutError, LogUnavailableError) as error:
                if time.monotonic() > end_s:
                    raise LogUnavailableError(f"the log does not acknowledge: {error!r}") from error
            await asyncio.sleep(_PAUSE_S)

    async def _published(self, content: bytes, headers: dict[str, str]) -> int:
        if len(content) <= _CONTENT_MAX:
            return await self._acknowledged(content, headers)
        parts = encoded_parts(content, _CONTENT_MAX)
        batch = {"Nats-Batch-Id": secrets.token_hex(16)}
        for i, part in enumerate(parts[:-1]):
            first = headers if i == 0 else {}
            numbered = {**first, **batch, "Nats-Batch-Sequence": str(i + 1)}
            await self._client.publish(self._options.subject, part, headers=numbered)
        last = {**batch, "Nats-Batch-Sequence": str(len(parts)), "Nats-Batch-Commit": "1"}
        return await self._acknowledged(parts[-1], last)

    async def _acknowledged(self, content: bytes, headers: dict[str, str]) -> int:
        subject = self._options.subject
        response = await self._client.request(subject, content, timeout=_REQUEST_S, headers=headers)
        found = json.loads(response.data)
        error = found.get("error")
        if error is None:
            return int(found["seq"])
        code, text = error.get("err_code"), error.get("description")
        if code == _NOT_FIRST:
            raise LogConflictError("the log has a first message already")
        if code == _REPEATED_BATCH:
            return await self.end()
        if error.get("code") == _UNAVAILABLE or code in _UNFINISHED_BATCH:
            raise LogUnavailableError(text)
        raise LogError(f"the log refuses a message: {text}")

    async def read(self, after: int) -> AsyncIterator[Message]:
        """Yield messages; see `Log.read`."""
        assembler = Assembler()
        while True:
            try:
                async for message in self._delivered(after):
                    after = message.metadata.sequence.stream
                    entries = assembler.decoded(message.data)
                    if entries is not None:
                        yield Message(after, entries)
            except (nats.errors.Error, TimeoutError, LogUnavailableError) as error:
                _log.info("the log is read again from offset %d: %r", after + 1, error)
                await asyncio.sleep(_PAUSE_S)

    async def _delivered(self, after: int) -> AsyncIterator[Msg]:
        """Yield messages of the stream, until one was lost on its way or nothing comes."""
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        try:
            await self._begin_delivery(inbox, after + 1)
            count = 0
            while True:
                message = await subscription.next_msg(_SILENCE_S)
                if await self._is_status(message, count):
                    continue
                numbers = message.metadata.sequence
                if numbers.consumer != count + 1:
                    return
                if numbers.stream != after + 1:
                    raise LogError(
                        f"the log has no message {after + 1}, its next one is {numbers.stream}: a node "
                        "whose store is older than the log needs another store"
                    )
                count, after = count + 1, after + 1
                yield message
        finally:
            await _ended(subscription)

    async def _begin_delivery(self, inbox: str, first: int) -> None:
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
        stream = self._options.stream
        await self._api(f"CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": options})

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

    async def end(self) -> int:
        """Return the last offset; see `Log.end`."""
        try:
            found = await self._api(f"STREAM.INFO.{self._options.stream}", {})
        except (nats.errors.Error, TimeoutError) as error:
            raise LogUnavailableError(f"the log does not respond: {error!r}") from error
        return int(found["state"]["last_seq"])

    async def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            await self._client.close()

    async def _api(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Call the API of JetStream.

        Raises
        ------
        LogUnavailableError
            If there is no leader now.
        LogError
            If it responds with another error.
        """
        data = json.dumps(request).encode()
        response = await self._client.request(f"$JS.API.{name}", data, timeout=_REQUEST_S)
        found: dict[str, Any] = json.loads(response.data)
        error = found.get("error")
        if error is None:
            return found
        if error.get("err_code") == _NO_STREAM:
            raise _NoStreamError
        if error.get("code") == _UNAVAILABLE:
            raise LogUnavailableError(error.get("description"))
        raise LogError(f"the log refuses {name}: {error.get('description')}")

    async def prepare(self) -> None:
        """Make the stream unless it exists, and verify that it promises durability.

        Raises
        ------
        LogError
            If it does not, or cannot be made.
        """
        options = self._options
        end_s = time.monotonic() + _APPEND_S
        while True:
            try:
                found = await self._stream()
                break
            except (nats.errors.Error, TimeoutError, LogUnavailableError) as error:
                if time.monotonic() > end_s:
                    raise LogUnavailableError(f"the log does not respond: {error!r}") from error
            await asyncio.sleep(_PAUSE_S)
        flaws = _flaws(found["config"], options)
        if not flaws:
            members = _members(found)
            flaws = await asyncio.to_thread(require_synced, members, options.monitors)
        if flaws and not options.is_unsafe:
            raise LogError(
                f"the log does not promise durability: {'; '.join(flaws)}; --log-unsafe to try it anyway"
            )
        if flaws:
            _log.warning("the log may lose acknowledged objects: %s", "; ".join(flaws))

    async def _stream(self) -> dict[str, Any]:
        options = self._options
        with contextlib.suppress(_NoStreamError):
            return await self._api(f"STREAM.INFO.{options.stream}", {})
        settings = {
            "name": options.stream,
            "subjects": [options.subject],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": options.replicas,
            "duplicate_window": _DUPLICATES_S * _SECOND_NS,
            "allow_atomic": True,
        }
        return await self._api(f"STREAM.CREATE.{options.stream}", settings)


class _NoStreamError(LogError):
    """The stream does not exist."""


async def open_log(options: JetStreamOptions) -> JetStreamLog:
    """Connect to the servers, make the stream unless it exists, and verify what it promises.

    Raises
    ------
    LogError
        If no server can be reached, or the log does not promise durability.
    """
    try:
        client = await nats.connect(
            list(options.servers),
            error_cb=_note,
            connect_timeout=2,
            reconnect_time_wait=0.2,
            max_reconnect_attempts=3,
            ping_interval=2,
            max_outstanding_pings=2,
        )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise LogUnavailableError(f"no server of the log can be reached: {error}") from error
    client.options["max_reconnect_attempts"] = -1
    log = JetStreamLog(client, options)
    try:
        await log.prepare()
    except BaseException:
        await log.close()
        raise
    return log


async def _note(error: Exception) -> None:
    _log.info("connection to the log: %r", error)


async def _ended(subscription: Subscription) -> None:
    with contextlib.suppress(nats.errors.Error):
        await subscription.unsubscribe()


def _members(found: dict[str, Any]) -> set[str]:
    """Return the names of the servers that have the stream; empty if it is on one server alone."""
    cluster = found.get("cluster") or {}
    names = {str(one["name"]) for one in cluster.get("replicas") or []}
    return names | {str(cluster["leader"])} if cluster.get("leader") else names


def _flaws(settings: dict[str, Any], options: JetStreamOptions) -> list[str]:
    """Return what keeps a stream from the promise, as phrases."""
    flaws = []
    if settings.get("num_replicas", 1) < options.replicas:
        flaws.append(
            f"stream {options.stream} has {settings.get('num_replicas', 1)} replicas, must have "
            f"{options.replicas}"
        )
    for name, expected in (("storage", "file"), ("retention", "limits"), ("discard", "new")):
        if settings.get(name) != expected:
            flaws.append(f"{name} of stream {options.stream} is {settings.get(name)}, must be {expected}")
    if not settings.get("allow_atomic"):
        flaws.append(f"stream {options.stream} accepts no batches (allow_atomic)")
    return flaws
