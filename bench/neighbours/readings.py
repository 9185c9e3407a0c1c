"""Sample memory and CPU of a server process while callers act."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from bench.server.processes import Process

_EVERY_S = 0.05
_MB = 2**20


class Readings:
    """Sample a process from a thread, until the block ends.

    Parameters
    ----------
    server
        The process.
    """

    def __init__(self, server: Process) -> None:
        self._server = server
        self._ended = threading.Event()
        self.samples: list[tuple[float, float, float]] = []
        """Monotonic seconds, megabytes, and seconds of CPU; in order. The list ends when the process
        does."""
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        """Start sampling."""
        self._thread.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Stop sampling."""
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                rss_mb, cpu_s = self._server.rss_bytes() / _MB, self._server.cpu_s()
            except (OSError, IndexError):
                return  # the process has ended
            self.samples.append((time.monotonic(), rss_mb, cpu_s))

    def rss_mb(self, at_s: float) -> float:
        """Return the size of the process at a time: that of the last sample until then."""
        return [rss for time_s, rss, _ in self.samples if time_s <= at_s][-1]

    def rss_mb_max(self, from_s: float, to_s: float) -> float:
        """Return the largest size of the process within a span."""
        inside = [rss for time_s, rss, _ in self.samples if from_s <= time_s <= to_s]
        return max(inside, default=self.rss_mb(to_s))

    def cores(self, from_s: float, to_s: float) -> float:
        """Return the number of cores that the process kept busy within a span."""
        inside = [(time_s, cpu) for time_s, _, cpu in self.samples if from_s <= time_s <= to_s]
        if len(inside) < 2:  # noqa: PLR2004 - a span has two ends
            return 0.0
        (begin_s, first), (end_s, last) = inside[0], inside[-1]
        return (last - first) / (end_s - begin_s)
