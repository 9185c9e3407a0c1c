"""What a gateway counts, and what Prometheus gets of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_PREFIX = "nearcast_gateway_"

_HELP = {
    "connections": "Connections, of WebSockets and of HTTP requests.",
    "sockets": "WebSockets.",
    "devices": "Devices attached through this gateway.",
    "watchers": "Operators that watch through this gateway.",
    "streams": "Fleet streams to the server.",
    "connections_refused": "Connections closed because there were too many, in all or of an address.",
    "handshakes_refused": "WebSocket handshakes that were refused.",
    "frames_received": "Frames of devices.",
    "frames_sent": "Frames to devices.",
    "bytes_received": "Bytes of frames of devices.",
    "bytes_sent": "Bytes of frames to devices.",
    "slow": "Devices detached, and watchers disconnected, because they read too slowly.",
    "requests": "HTTP requests for the server.",
}


@dataclass(slots=True)
class Counters:
    """Numbers since the start of the gateway, and present ones."""

    connections: int = 0
    sockets: int = 0
    devices: int = 0
    watchers: int = 0
    streams: int = 0
    connections_refused: int = 0
    handshakes_refused: int = 0
    frames_received: int = 0
    frames_sent: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    slow: int = 0
    requests: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refusals that this gateway has decided itself, by reason."""


_PRESENT = frozenset({"connections", "sockets", "devices", "watchers", "streams"})


class GatewayMetrics(Collector):
    """The counters, as Prometheus reads them in the thread of the metrics port.

    Parameters
    ----------
    counters
        The counters of the gateway.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    async def collector(self) -> Collector:
        """Return the content of a scrape."""
        return self

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        for name, text in _HELP.items():
            kind = GaugeMetricFamily if name in _PRESENT else CounterMetricFamily
            yield kind(_PREFIX + name, text, value=getattr(self._counters, name))
        refused = CounterMetricFamily(
            f"{_PREFIX}refused", "Refusals of this gateway itself.", labels=["reason"]
        )
        for reason, count in list(self._counters.refused.items()):  # another thread counts
            refused.add_metric([reason], count)
        yield refused
