"""What a scrape of a server contains: a reading of its event loop, and how long that took.

The metrics are read on the event loop of the server, which takes a millisecond or two.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from server.monitoring.catalogue import PREFIX
from server.monitoring.families import families_of
from server.monitoring.readings import Reading

_log = logging.getLogger(__name__)

ANSWER_S = 2.0
"""How long reading on the event loop may take; then a scrape only reports the delay."""


class _Families(Collector):
    """The content of one scrape."""

    def __init__(self, delay_s: float, reading: Reading | None) -> None:
        self._delay_s, self._reading = delay_s, reading

    def collect(self) -> Iterator[Family]:
        """Yield the families."""
        yield GaugeMetricFamily(
            f"{PREFIX}event_loop_delay_seconds",
            "Time that this scrape waited for the event loop.",
            self._delay_s,
        )
        if self._reading is not None:
            yield from families_of(self._reading)


class Scrapes:
    """Reads the metrics of a server, for the thread of its metrics port.

    Parameters
    ----------
    read
        Returns a reading, on the event loop of the server.
    loop
        The event loop of the server.
    """

    def __init__(self, read: Callable[[], Reading], loop: asyncio.AbstractEventLoop) -> None:
        self._read, self._loop = read, loop

    async def collect(self) -> Collector:
        """Return the content of a scrape."""
        return _Families(*await self._reading())

    async def _reading(self) -> tuple[float, Reading | None]:
        """Return the delay of the server's loop in seconds, and the reading; None if it took too long."""
        began_s = time.perf_counter()

        async def read() -> tuple[float, Reading]:
            return time.perf_counter() - began_s, self._read()

        coroutine = read()
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            return await asyncio.wait_for(asyncio.wrap_future(future), ANSWER_S)
        except TimeoutError:
            _log.warning("the event loop has not responded to a scrape for %g s", ANSWER_S)
        except RuntimeError:  # it is closed
            coroutine.close()
        return ANSWER_S, None
