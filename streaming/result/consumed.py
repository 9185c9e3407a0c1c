"""What a batch has read of the feeds, from Spark's own logs, while they are there.

A file is named by its path, a stretch of a stream in Redis by `feeds.redis.address.Stretch`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from feeds.redis import RedisAddress
from feeds.redis.address import BEGIN, Stretch

_NOTHING_YET = "-"
"""In the log of offsets, of a source that had nothing."""
_HEADER_LINES = 2
"""Of an entry of the log of offsets, before the offsets of the sources."""
_FILES = "logOffset"
"""What the offset of a source of files has."""


def read_by(
    checkpoint: Path, batch: int, feeds: Sequence[tuple[str, Path | RedisAddress]]
) -> dict[str, list[str]]:
    """Return what a batch has read, of each feed.

    The log of a source of files has files by numbers of its own; that of offsets says up to which of
    them, or of the entries in Redis, each batch has read.

    Parameters
    ----------
    checkpoint
        Spark's.
    batch
        Its number.
    feeds
        Names of the feeds and where they are, in the order of the query's sources.
    """
    now, before = _offsets(checkpoint, batch, len(feeds)), _offsets(checkpoint, batch - 1, len(feeds))
    found = {}
    for source, (name, where) in enumerate(feeds):
        if isinstance(where, RedisAddress):
            found[name] = [
                str(Stretch(where.server, stream, before[source].get(stream, BEGIN), upto))
                for stream, upto in now[source].items()
                if before[source].get(stream, BEGIN) != upto
            ]
        else:
            numbers = range(before[source].get(_FILES, -1) + 1, now[source].get(_FILES, -1) + 1)
            log = checkpoint / "sources" / str(source)
            found[name] = [path for number in numbers for path in _files(log, number)]
    return found


def _offsets(checkpoint: Path, batch: int, count: int) -> list[dict[str, Any]]:
    """Return the offset of each source behind a batch; nothing where nothing was read."""
    if batch < 0:
        return [{}] * count
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[_HEADER_LINES:]
    return [{} if line == _NOTHING_YET else json.loads(line) for line in lines]


def _files(log: Path, number: int) -> list[str]:
    """Return the files of one number; every so many of them Spark writes a log of all before."""
    path = log / str(number)
    if not path.exists():
        path = log / f"{number}.compact"
    entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return sorted(unquote(urlparse(one["path"]).path) for one in entries if one["batchId"] == number)
