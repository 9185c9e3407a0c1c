"""Parallel work on all cores ahead of the consumer, with results in order. Kernels release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Part = TypeVar("_Part")
_Done = TypeVar("_Done")

_AHEAD = 2
"""Parts in progress or waiting for the consumer, for each core."""


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ahead_of(parts: Sequence[_Part], work: Callable[[_Part], _Done]) -> Iterator[_Done]:
    """Yield the result of each part, in order; while the caller uses one, the next are in progress.

    `work` must not depend on the caller's processing of earlier results.
    """
    if len(parts) <= 1:
        yield from map(work, parts)
        return
    cores = core_count()
    waiting: deque[Future[_Done]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) >= _AHEAD * cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
