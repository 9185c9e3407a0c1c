"""The streams of a feed: append rows, and read ranges of ids.

Redis assigns ids that increase in each stream. The rows of one object, or of one subscription, go to one
stream, so they stay in order. Calls to a server that does not respond are retried for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.exceptions import BusyLoadingError, ConnectionError, RedisError, ResponseError, TimeoutError  # noqa: A004
from redis.retry import Retry

from feeds.redis.address import BEGIN, Credentials, RedisAddress, Span
from feeds.redis.entries import ARROW, batches_of, packed, rows_of

_RETRIES = 40
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0
_ANSWER_S = 10.0
_AT_ONCE = 64
"""Entries in one read."""
_LAST = "+"
"""Stands for the last id in a range."""

_BYTES_AT_ONCE = 16 * 1024 * 1024
"""Bytes of entries in one read of `wait`, if the next ones are no larger than those before them."""

_IMPATIENT_ANSWER_S = 3.0
"""Time limit of a response for a caller that retries itself, and may have to end meanwhile."""

_ID_AFTER = """
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
if #found == 0 then return ARGV[1] end
return found[#found][1]
"""

__all__ = ["Entry", "RedisError", "Streams", "TrimmedError", "connected"]

Entry = dict[bytes, bytes]
"""Fields of an entry."""


class TrimmedError(RedisError):
    """Entries of a range may have been trimmed."""


def connected(server: str, *, is_patient: bool = True, credentials: Credentials | None = None) -> Redis:
    """Return a client of a database. A patient client retries for a minute if the server is silent.

    The default credentials are those of the environment.
    """
    shown = credentials or Credentials.of_environment()
    retry = Retry(ExponentialBackoff(_PAUSE_MAX_S, _PAUSE_S), _RETRIES if is_patient else 0)
    answer_s = _ANSWER_S if is_patient else _IMPATIENT_ANSWER_S
    return Redis.from_url(
        server,
        retry=retry,
        retry_on_error=[ConnectionError, TimeoutError, BusyLoadingError],
        socket_timeout=answer_s,
        socket_connect_timeout=answer_s,
        **cast("Any", shown.values),
    )


class Streams:
    """A feed in Redis.

    Parameters
    ----------
    address
        Address of the feed.
    schema
        Schema of its rows.
    key
        A column of integers. Rows with the same key stay in order.
    is_patient
        Whether the client retries for a minute if the server does not respond; if not, the caller does.
    credentials
        Credentials for Redis; those of the environment by default.
    """

    def __init__(
        self,
        address: RedisAddress,
        schema: pa.Schema,
        key: str,
        *,
        is_patient: bool = True,
        credentials: Credentials | None = None,
    ) -> None:
        self.address = address
        self._schema, self._key = schema, key
        self._counts: dict[str, int] = {}
        """By stream: how many entries `wait` reads next."""
        self._redis = connected(address.server, is_patient=is_patient, credentials=credentials)

    def append(self, rows: pa.Table) -> None:
        """Append rows, each to the stream of its key. O(rows).

        Rows that are appended while the server becomes unreachable may be stored twice.

        Raises
        ------
        RedisError
            If the server does not respond, or refuses.
        """
        for name, own in self.divided(rows):
            for batch in batches_of(own):
                self._redis.xadd(name, cast("Any", {ARROW: packed(batch)}))

    def divided(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the name of each stream that gets rows, and these rows."""
        number = np.asarray(rows[self._key].to_numpy(), dtype=np.int64) % self.address.streams
        for stream, name in enumerate(self.address.names):
            own = rows.take(np.flatnonzero(number == stream)).cast(self._schema)
            if len(own):
                yield name, own

    def upto(self, after: str, stream: str, count: int | None) -> str:
        """Return the id of the entry `count` after another, or of the last one at most. O(count)."""
        if count is not None:
            found = self._redis.eval(_ID_AFTER, 1, stream, after, count)
            return cast("bytes", found).decode()
        last = cast("list[Any]", self._redis.xrevrange(stream, count=1))
        return last[0][0].decode() if last else after

    def read(self, span: Span) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range, one entry at a time. O(rows).

        The entry before the range must still exist. Streams are trimmed from their start, so no entry of
        the range is missing then.

        Raises
        ------
        TrimmedError
            If that entry or the last one of the range does not exist.
        """
        after = span.after
        while after != span.upto:
            found = self._redis.xrange(span.stream, after, span.upto, count=1 + _AT_ONCE)
            entries = cast("list[tuple[bytes, dict[bytes, bytes]]]", found)
            if after != BEGIN:
                before, *entries = entries or [(b"", {})]
                _require(before[0].decode() == after, span.stream, after)
            if not entries:
                _require(span.upto == _LAST, span.stream, span.upto)
                return
            for entry_id, fields in entries:
                yield rows_of(fields, self._schema)
                after = entry_id.decode()

    def wait(self, stream: str, after: str, wait_s: float) -> Iterator[tuple[str, Entry]]:
        """Yield ids and fields of the next entries after an id; wait up to `wait_s` if there are none.

        Redis gives whole entries, whatever their size. So it reads one at first, and twice as many as
        before while they are small.
        """
        count = self._counts.get(stream, 1)
        found = self._redis.xread({stream: after}, count=count, block=max(1, int(wait_s * 1000)))
        for _, entries in cast("list[tuple[bytes, list[tuple[bytes, Entry]]]]", found or []):
            largest = max(sum(map(len, fields.values())) for _, fields in entries)
            self._counts[stream] = max(1, min(_AT_ONCE, 2 * count, _BYTES_AT_ONCE // max(1, largest)))
            for entry_id, fields in entries:
                yield entry_id.decode(), fields

    def first(self, count: int) -> pa.Table:
        """Return about `count` first rows, the same number from each stream."""
        parts = []
        for stream in self.address.names:
            missing = count // self.address.streams
            for rows in self.read(Span(self.address.server, stream, BEGIN, _LAST)):
                parts.append(rows.slice(0, missing))
                missing -= len(parts[-1])
                if not missing:
                    break
        return pa.Table.from_batches(parts, self._schema)

    def put(self, stream: str, entry_id: str, rows: pa.RecordBatch) -> None:
        """Append an entry under the given id, unless the stream already has that id or a larger one."""
        try:
            self._redis.xadd(stream, cast("Any", {ARROW: packed(rows)}), id=entry_id)
        except ResponseError as error:
            if "equal or smaller" not in str(error):
                raise

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _require(is_there: bool, stream: str, entry_id: str) -> None:  # noqa: FBT001
    if not is_there:
        raise TrimmedError(
            f"{stream} lacks the entry {entry_id}, so that entries may be missing: trim only what comes "
            "before the input of the last batch"
        )
