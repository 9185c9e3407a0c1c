"""The log of objects in NATS JetStream: one stream, on the disks of its servers before it acknowledges.

A message of the log is at most 1 MiB. Larger ones become an atomic batch, which the stream accepts as a
whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster.access import LogAccess
from cluster.codec import Assembler, encoded, encoded_parts
from cluster.connection import Connection, closed, connected
from cluster.durability import require_synced
from cluster.entries import Entry
from cluster.jetstream_keys import JetStreamKeys
from cluster.log import LogError, LogServer, LogStream, LogUnavailableError, Message
from cluster.stream import Content, Stream

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_CONTENT_MAX = 1_000_000
"""Bytes of a message; the rest of 1 MiB is for headers."""
_PROMISED = (
    "storage",
    "retention",
    "discard",
    "max_age",
    "max_bytes",
    "max_msgs",
    "max_msgs_per_subject",
    "allow_msg_ttl",
)
"""Settings that a stream must have as this module makes it."""


@dataclass(frozen=True, slots=True)
class JetStreamOptions:
    """The streams, and what they have to promise."""

    servers: Sequence[str]
    """Addresses of servers, as nats://host:port or tls://host:port."""
    monitors: Sequence[str] = ()
    """Addresses of the monitoring ports of all servers that have replicas, as http(s)://host:port."""
    stream: str = "nearcast"
    """Name of the stream of objects; that of devices has the suffix `-devices`."""
    replicas: int = 3
    is_unsafe: bool = False
    """Whether streams that do not promise durability may be used."""
    access: LogAccess = field(default_factory=LogAccess)


class JetStreamLog:
    """A log in a stream. `open_log` makes it.

    Parameters
    ----------
    client
        Connected.
    options
        The streams.
    """

    def __init__(self, client: Connection, options: JetStreamOptions) -> None:
        self._client = client
        self._options = options
        self._stream = Stream(client, options.stream)
        self._devices = Stream(client, f"{options.stream}-devices")
        self._subject = f"{options.stream}.objects"

    @property
    def keys(self) -> JetStreamKeys:
        """The keys, which are in a stream of their own."""
        return JetStreamKeys(self._devices, f"{self._options.stream}.devices.")

    async def append(self, entries: Sequence[Entry], *, is_first: bool = False) -> int:
        """Append entries as one message; see `Log.append`."""
        content = encoded(entries)
        parts = [content]
        if len(content) > _CONTENT_MAX:
            parts = encoded_parts(content, _CONTENT_MAX)
        headers = {"Nats-Expected-Last-Sequence": "0"} if is_first else {}
        first, *others = parts
        return await self._stream.append(
            [
                Content(self._subject, first, headers),
                *(Content(self._subject, part) for part in others),
            ]
        )

    async def read(self, after: int) -> AsyncIterator[Message]:
        """Yield messages; see `Log.read`."""
        assembler = Assembler()
        async with contextlib.aclosing(self._stream.deliveries(after)) as messages:
            async for message in messages:
                offset = message.metadata.sequence.stream
                if offset != after + 1:
                    raise LogError(
                        f"the log has no message {after + 1}, its next one is {offset}: the node "
                        "has fallen behind the log; when it starts, it copies the store of another one"
                    )
                after = offset
                entries = assembler.decoded(message.data)
                if entries is not None:
                    yield Message(offset, entries)

    async def end(self) -> int:
        """Return the last offset; see `Log.end`."""
        return await self._stream.end()

    async def first(self) -> int:
        """Return the first offset; see `Log.first`."""
        first, _ = await self._stream.bounds()
        return first

    async def older(self, keep_s: float) -> int:
        """Return the last offset of old messages; see `Log.older`."""
        first, last = await self._stream.bounds()
        older, latest = first - 1, last
        if older < latest:
            limit_s = await self._stream.time_s(last) - keep_s
        while older < latest:
            middle = (older + latest + 1) // 2
            if await self._stream.time_s(middle) <= limit_s:
                older = middle
            else:
                latest = middle - 1
        return older

    async def trim(self, until: int) -> None:
        """Delete messages; see `Log.trim`."""
        await self._stream.purge(until)

    async def streams(self) -> list[LogStream]:
        """Return the streams; see `Log.streams`."""
        try:
            async with asyncio.timeout(_LOOK_S):
                return [_described(await one.description()) for one in (self._stream, self._devices)]
        except TimeoutError:
            raise LogUnavailableError("the log does not respond") from None

    @property
    def missing_right(self) -> str:
        """A right that the account of the log lacks, as the servers said; empty if none."""
        return self._client.missing_right

    async def close(self) -> None:
        """End the connection."""
        await closed(self._client)

    async def prepare(self) -> None:
        """Make the streams unless they exist, and verify that they promise durability.

        Raises
        ------
        LogError
            If one does not, or cannot be made.
        """
        for stream, settings in self._streams():
            await self._require_durable(await stream.made(settings), settings)

    async def create(self, after: int) -> None:
        """Make the streams of a cluster that is restored, and verify that they promise durability.

        Parameters
        ----------
        after
            The offset before that of the next message.

        Raises
        ------
        LogError
            If there is one of the streams, or one does not promise durability or cannot be made.
        """
        for stream, _ in self._streams():
            if await stream.exists():
                raise LogError(f"stream {stream.name} exists, must be absent: use other servers or names")
        for stream, settings in self._streams():
            first = {"first_seq": after + 1} if stream is self._stream else {}
            await self._require_durable(await stream.made({**settings, **first}), settings)

    def _streams(self) -> list[tuple[Stream, dict[str, Any]]]:
        """Return the streams with their settings."""
        common = {"num_replicas": self._options.replicas, "max_age": 0}
        objects = {
            "subjects": [self._subject],
            "discard": "new",  # with this, max_bytes and max_msgs refuse messages and delete none
            "max_msgs_per_subject": -1,
            **common,
        }
        devices = {
            "subjects": [f"{self._options.stream}.devices.>"],
            "max_bytes": -1,
            "max_msgs": -1,
            "max_msgs_per_subject": 1,
            "allow_msg_ttl": True,
            **common,
        }
        return [(self._stream, objects), (self._devices, devices)]

    async def _require_durable(self, found: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        options = self._options
        flaws = _flaws(found["config"], settings)
        if not flaws:
            members = _members(found)
            context = options.access.context()
            flaws = await asyncio.to_thread(require_synced, members, options.monitors, context)
        if flaws and not options.is_unsafe:
            raise LogError(
                f"the log does not promise durability: {'; '.join(flaws)}; --log-unsafe to try it anyway"
            )
        if flaws:
            _log.warning("the log may lose acknowledged data: %s", "; ".join(flaws))


def _described(found: Mapping[str, Any]) -> LogStream:
    cluster, state = found.get("cluster") or {}, found["state"]
    servers = [
        LogServer(str(one["name"]), False, bool(one.get("current")), int(one.get("lag", 0)))
        for one in cluster.get("replicas") or []
    ]
    if cluster.get("leader"):
        servers.insert(0, LogServer(str(cluster["leader"]), True, True, 0))
    return LogStream(found["config"]["name"], int(state["messages"]), int(state["bytes"]), servers)


async def open_log(options: JetStreamOptions) -> JetStreamLog:
    """Connect to the servers, make the stream unless it exists, and verify what it promises.

    Raises
    ------
    LogError
        If no server can be reached, or the log does not promise durability.
    """
    log = await connected_log(options)
    try:
        await log.prepare()
    except LogUnavailableError:
        await log.close()
        missing = log.missing_right
        if missing:
            raise LogError(f"the account of the log has too few rights: {missing}") from None
        raise
    except BaseException:
        await log.close()
        raise
    return log


async def connected_log(options: JetStreamOptions) -> JetStreamLog:
    """Connect to the servers. Neither makes nor verifies the streams.

    Raises
    ------
    LogError
        If no server can be reached, or it refuses the credentials.
    """
    return JetStreamLog(await connected(options.servers, options.access), options)


def _members(found: Mapping[str, Any]) -> set[str]:
    """Return the names of the servers that have the stream; empty if it is on one server alone."""
    cluster = found.get("cluster") or {}
    names = {str(one["name"]) for one in cluster.get("replicas") or []}
    return names | {str(cluster["leader"])} if cluster.get("leader") else names


def _flaws(found: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Return what keeps a stream from the promise, as phrases."""
    name, replicas = found["name"], found.get("num_replicas", 1)
    flaws = []
    if replicas < settings["num_replicas"]:
        flaws.append(f"stream {name} has {replicas} replicas, must have {settings['num_replicas']}")
    expected = {"storage": "file", "retention": "limits", **settings}
    flaws.extend(
        f"{field} of stream {name} is {found.get(field)}, must be {expected[field]}"
        for field in _PROMISED
        if field in expected and found.get(field) != expected[field]
    )
    if not found.get("allow_atomic"):
        flaws.append(f"stream {name} accepts no batches (allow_atomic)")
    return flaws
