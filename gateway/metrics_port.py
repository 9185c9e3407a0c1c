"""The metrics for Prometheus, on a port of their own: whoever reaches it can read them."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from gateway.counters import Counters, GatewayMetrics

PATH = "/metrics"


class MetricsPort:
    """Serves the counters.

    Parameters
    ----------
    counters
        The counters of the gateway.
    """

    def __init__(self, counters: Counters) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(GatewayMetrics(counters))
        ProcessCollector(registry=self._registry)
        app = web.Application()
        app.add_routes([web.get(PATH, self._scrape)])
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None)

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError if that is not possible."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _scrape(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})
