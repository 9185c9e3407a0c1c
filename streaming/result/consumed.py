"""Which files of the feeds a batch has read, from Spark's own logs, while they are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

_NOTHING_YET = "-"
"""In the log of offsets, of a source that had nothing."""
_HEADER_LINES = 2
"""Of an entry of the log of offsets, before the offsets of the sources."""


def files_of(checkpoint: Path, batch: int, feeds: Sequence[str]) -> dict[str, list[str]]:
    """Return the files that a batch has read, of each feed.

    The log of a source has files by numbers of its own; that of offsets says up to which of them each
    batch has read.

    Parameters
    ----------
    checkpoint
        Spark's.
    batch
        Its number.
    feeds
        Names of the feeds, in the order of the query's sources.
    """
    now, before = _offsets(checkpoint, batch, len(feeds)), _offsets(checkpoint, batch - 1, len(feeds))
    return {
        name: [
            path
            for number in range(before[source] + 1, now[source] + 1)
            for path in _files(checkpoint / "sources" / str(source), number)
        ]
        for source, name in enumerate(feeds)
    }


def _offsets(checkpoint: Path, batch: int, count: int) -> list[int]:
    if batch < 0:
        return [-1] * count
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[_HEADER_LINES:]
    return [-1 if line == _NOTHING_YET else int(json.loads(line)["logOffset"]) for line in lines]


def _files(log: Path, number: int) -> list[str]:
    """Return the files of one number; every so many of them Spark writes a log of all before."""
    path = log / str(number)
    if not path.exists():
        path = log / f"{number}.compact"
    entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return sorted(unquote(urlparse(one["path"]).path) for one in entries if one["batchId"] == number)
