"""What a power cut may leave of a transaction that was being written: any of its sectors."""

from __future__ import annotations

import random
from pathlib import Path

_HEADER_BYTES = 32


def cut_power(log: Path, before: bytes, after: bytes, rng: random.Random, sector: int) -> None:
    """Write a log as a power cut leaves it while `before` became `after`.

    A sector that was not written is as it was, zeros if it was beyond the file's end; the file ends
    anywhere behind the last sector that was written. The header of a log is synced before anything else.
    """
    if len(before) < _HEADER_BYTES:
        if rng.random() < 0.1:
            log.write_bytes(rng.choice((before, after[:_HEADER_BYTES])))
            return
        before = after[:_HEADER_BYTES]
    begin = _first_difference(before, after)
    sectors = [*range(begin // sector, -(-len(after) // sector))]
    share = rng.choice((0.0, 0.1, 0.5, 0.9, 0.97))
    written = {one for one in sectors if rng.random() < share}
    data = bytearray(before)
    for one in sorted(written):
        start, end = one * sector, min((one + 1) * sector, len(after))
        if len(data) < end:
            data += bytes(end - len(data))
        data[start:end] = after[start:end]
    if rng.random() < 0.3 and len(data) < len(after):
        data += bytes(rng.randrange(len(after) - len(data) + 1))
    log.write_bytes(data)


def _first_difference(before: bytes, after: bytes) -> int:
    if after.startswith(before):
        return len(before)
    return next(i for i, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
