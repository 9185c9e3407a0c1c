"""Feeds of messages as the bridge reads and writes them: folders of Parquet, or Redis.

What blocks is called in threads. `pyarrow` and `redis` are needed here alone, so a server without a
bridge does without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from feeds.redis import RedisAddress
from feeds.redis.address import BEGIN, is_redis
from feeds.redis.streams import RedisError, Streams
from feeds.schemas import KEYS, MESSAGES

FeedError = (OSError, pa.ArrowException, RedisError)
"""What reading and writing may raise: they are tried again."""

_FILES = "files"
"""The only stream of a folder."""


class Taken(Protocol):
    """A feed that is read."""

    streams: tuple[str, ...]

    def begin(self, stream: str) -> str:
        """Return the offset before everything."""
        ...

    def next(self, stream: str, after: str, wait_s: float) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield what comes behind an offset, with its own; wait a while if there is nothing."""
        ...


class Given(Protocol):
    """A feed that is written."""

    def put(self, first: int, last: int, rows: pa.Table) -> None:
        """Append what has these numbers."""
        ...


class TakenFolder:
    """Files of a folder in the order of their names, which are the offsets."""

    def __init__(self, folder: Path) -> None:
        self.streams: tuple[str, ...] = (_FILES,)
        self._folder = folder

    def begin(self, stream: str) -> str:  # noqa: ARG002 - there is one
        """Return what comes before every name."""
        return ""

    def next(
        self,
        stream: str,  # noqa: ARG002
        after: str,
        wait_s: float,  # noqa: ARG002 - the caller looks again
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of the next file: all but its last part with the offset before it."""
        names = (path.name for path in self._folder.glob("*.parquet"))
        name = min((one for one in names if one > after and one[0] not in "._"), default=None)
        if name is None:
            return
        batches = pq.read_table(self._folder / name, schema=MESSAGES).to_batches() or [
            pa.RecordBatch.from_pylist([], MESSAGES)
        ]
        for rows in batches[:-1]:
            yield after, rows
        yield name, batches[-1]


class TakenRedis:
    """A feed in Redis; offsets are ids of entries."""

    def __init__(self, address: RedisAddress) -> None:
        self.streams = address.names
        self._streams = Streams(address, MESSAGES, KEYS["messages"])

    def begin(self, stream: str) -> str:  # noqa: ARG002
        """Return what comes before every id."""
        return BEGIN

    def next(self, stream: str, after: str, wait_s: float) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of the next entries."""
        return self._streams.wait(stream, after, wait_s)


class GivenFolder:
    """A file for each group of rows, named by their numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, first: int, last: int, rows: pa.Table) -> None:
        """Write a file, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{first:016d}-{last:016d}.parquet"
        fresh = self._folder / f".{name}"
        pq.write_table(rows, fresh)
        fresh.rename(self._folder / name)


class GivenRedis:
    """Entries whose ids are the numbers of their last rows."""

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._streams = Streams(address, MESSAGES, KEYS["messages"])

    def put(self, first: int, last: int, rows: pa.Table) -> None:  # noqa: ARG002 - the last one tells
        """Append to the streams of the objects."""
        for name, part in self._streams.divided(rows):
            for batch in part.combine_chunks().to_batches():
                self._streams.put(name, f"{last}-0", batch)


def taken(text: str) -> Taken:
    """Return a feed that is read.

    Raises
    ------
    FileNotFoundError
        If a folder is not there.
    """
    if is_redis(text):
        return TakenRedis(RedisAddress.parse(text))
    if not Path(text).is_dir():
        raise FileNotFoundError(f"inlet is {text}, must be a folder that is there, or redis://...")
    return TakenFolder(Path(text))


def given(text: str) -> Given:
    """Return a feed that is written."""
    return GivenRedis(RedisAddress.parse(text)) if is_redis(text) else GivenFolder(Path(text))
