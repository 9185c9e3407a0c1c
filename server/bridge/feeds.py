"""Feeds of messages for the bridge: folders of Parquet, or Redis.

Blocking calls run in threads. Only these modules need `pyarrow` and `redis`, so a server without a bridge
does not.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.bounds import UnreadableError
from feeds.redis import RedisAddress
from feeds.redis.address import BEGIN, is_redis
from feeds.redis.entries import batches_of, read_rows
from feeds.redis.streams import Streams
from feeds.schemas import KEYS, MESSAGES
from server.bridge.chunk import ROWS_MAX, Chunk
from server.bridge.folder import FolderSourceFeed
from server.store.files import sync_folder

_TOKEN_BYTES = 8


class SourceFeed(Protocol):
    """A feed to read."""

    streams: tuple[str, ...]

    def begin(self, stream: str) -> str:
        """Return the offset before all messages."""
        ...

    def next(self, stream: str, after: str, wait_s: float) -> Iterator[Chunk]:
        """Yield the chunks after an offset; wait a while if there are none.

        An unreadable part is a chunk, too, which the source skips. After any error the call may be
        repeated.
        """
        ...

    def close(self) -> None:
        """Release all resources; a concurrent read fails."""
        ...


class SinkFeed(Protocol):
    """A feed to write."""

    def put(self, first: int, last: int, rows: pa.Table) -> None:
        """Append the rows with these numbers."""
        ...


class RedisSourceFeed:
    """A feed in Redis; offsets are ids of entries."""

    def __init__(self, address: RedisAddress) -> None:
        self.streams = address.names
        self._streams = Streams(address, MESSAGES, KEYS["messages"], is_patient=False)

    def begin(self, stream: str) -> str:  # noqa: ARG002
        """Return the offset before all ids."""
        return BEGIN

    def next(self, stream: str, after: str, wait_s: float) -> Iterator[Chunk]:
        """Yield the rows of the next entries, those of small ones together."""
        waiting: list[dict[str, Any]] = []
        for entry_id, fields in self._streams.wait(stream, after, wait_s):
            try:
                rows = read_rows(fields, MESSAGES)
            except UnreadableError as error:
                if waiting:
                    yield Chunk(after, waiting)
                    waiting = []
                reason = f"entry {entry_id} of {stream} is skipped: {error}"
                yield Chunk(entry_id, [], reason)
                after = entry_id
                continue
            for start in range(0, rows.num_rows, ROWS_MAX):
                if len(waiting) >= ROWS_MAX:
                    yield Chunk(after, waiting)
                    waiting = []
                waiting += rows.slice(start, ROWS_MAX).to_pylist()
            after = entry_id
        if waiting:
            yield Chunk(after, waiting)

    def close(self) -> None:
        """Close the connections."""
        self._streams.close()


class FolderSinkFeed:
    """A feed with a file for each group of rows, named by their numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, first: int, last: int, rows: pa.Table) -> None:
        """Write a file atomically, also if another node writes the same one, and sync it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{first:016d}-{last:016d}.parquet"
        temporary = self._folder / f".{name}.{secrets.token_hex(_TOKEN_BYTES)}"
        try:
            with temporary.open("xb") as file:
                pq.write_table(rows, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._folder / name)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(str(self._folder / name))


class RedisSinkFeed:
    """A feed of entries whose ids are the number of the last row of a write, and their place in it."""

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._streams = Streams(address, MESSAGES, KEYS["messages"], is_patient=False)

    def put(self, first: int, last: int, rows: pa.Table) -> None:  # noqa: ARG002 - the last one is enough
        """Append the rows to the streams of their objects."""
        for name, part in self._streams.divided(rows):
            for place, batch in enumerate(batches_of(part)):
                self._streams.put(name, f"{last}-{place}", batch)


def open_source(text: str) -> SourceFeed:
    """Return a feed to read.

    Raises
    ------
    FileNotFoundError
        If a folder does not exist.
    """
    if is_redis(text):
        return RedisSourceFeed(RedisAddress.parse(text))
    if not Path(text).is_dir():
        raise FileNotFoundError(f"source is {text}, must be an existing folder, or redis://...")
    return FolderSourceFeed(Path(text))


def open_sink(text: str) -> SinkFeed:
    """Return a feed to write."""
    return RedisSinkFeed(RedisAddress.parse(text)) if is_redis(text) else FolderSinkFeed(Path(text))
