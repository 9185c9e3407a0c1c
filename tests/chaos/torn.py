"""Tear the last write of a store whose server was killed: bytes behind the last commit, never before it.

SQLite's log is a header and frames, each a header and a page. A frame belongs to the log if it carries
the header's salts; those of an earlier round may follow. What was acknowledged ends with a frame that
says how large the database is, the mark of a commit.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

_HEADER = struct.Struct(">8I")
"""Magic number, version, page size, checkpoint, two salts, two checksums."""
_FRAME = struct.Struct(">6I")
"""Page number, database size after a commit or 0, two salts, two checksums."""


def tear(log: Path, chance: random.Random) -> str:
    """Damage a log behind its last commit; return how, or nothing if there is no commit in it."""
    data = log.read_bytes() if log.exists() else b""
    end, last = _end_of_commits(data)
    if not last:
        return ""
    started = data[end:]
    how = chance.choice(("cut short", "half a frame", "torn frame", "garbage"))
    if how == "cut short":
        torn = started[: chance.randrange(len(started) + 1)]
    elif how == "half a frame":
        torn = last[: chance.randrange(1, len(last))]
    elif how == "torn frame":  # marked as a commit, its second half never written
        half = len(last) // 2
        torn = last[:half] + chance.randbytes(len(last) - half)
    else:
        torn = chance.randbytes(chance.randrange(1, 3 * len(last)))
    log.write_bytes(data[:end] + torn)
    return how


def _end_of_commits(data: bytes) -> tuple[int, bytes]:
    """Return where the last commit of a log ends, and its last frame."""
    if len(data) < _HEADER.size:
        return 0, b""
    _, _, page, _, *salts = _HEADER.unpack_from(data)[:6]
    end, last = 0, b""
    step = _FRAME.size + page
    for start in range(_HEADER.size, len(data) - step + 1, step):
        _, size, *frame_salts = _FRAME.unpack_from(data, start)[:4]
        if frame_salts != salts:
            break
        if size:
            end, last = start + step, data[start : start + step]
    return end, last
