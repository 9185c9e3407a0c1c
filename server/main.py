"""The composition root: store, switchboard, pump and listener become a server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from index.catalogue import OBJECT_INDEXES, SUBSCRIPTION_INDEXES
from index.tables.growth import reserve
from safe_region.frame import Frame
from safe_region.jit.ahead import Report
from server.engine import CostModel, EngineOptions
from server.lifecycle import ServerState
from server.limits import Limits
from server.pump import Pump, wall_clock_ms
from server.retention import Retention
from server.settings import ServerSettings
from server.store import SqliteStore
from server.switchboard import Switchboard
from server.transport import Access, Listener
from server.transport.listener import TlsFiles
from server.warmup import logged, ready_kernels

_log = logging.getLogger(__name__)

_DRAIN_S = 5.0
"""How long a stopping server waits for streams to end: a stalled device does not hold it up."""

_GRACE_S = 1.0
"""How long it then lets calls finish."""

_SWITCH_S = 0.0002
"""How long a thread waits for the interpreter while another has it: what was looked up is wanted."""

_LEASE_MS = 600_000
"""Ten minutes: long for a phone that sleeps between two signs of life, short for who counts devices."""


_RETENTION_DAYS = 90.0
"""A quarter of a year: who comes back later has most likely installed the app anew."""


class Server:
    """A running server.

    Parameters
    ----------
    settings
        Where to listen, what to serve, what to keep.
    limits
        What is accepted.
    clock
        Wall clock in milliseconds.
    on_compiling
        Is told how many kernels are compiled, if any are missing on this machine; by default the log is.
    """

    def __init__(
        self,
        settings: ServerSettings,
        limits: Limits | None = None,
        clock: Callable[[], int] = wall_clock_ms,
        on_compiling: Report | None = None,
    ) -> None:
        self.settings = settings
        self._frame = Frame.of(settings.area)
        self._limits = limits or Limits(margin_m_max=settings.margin_m_max, late_ms=settings.late_ms)
        self._clock = clock
        self._on_compiling = on_compiling or logged()
        self.port = 0

    async def start(self) -> None:
        """Open the store, listen, recover, serve.

        While it recovers, calls are refused with RECOVERING, and health says NOT_SERVING.

        Raises
        ------
        StoreError
            If the store cannot be used.
        PortError
            If the address cannot be listened on.
        """
        settings = self.settings
        if settings.store != Path(":memory:"):
            settings.store.parent.mkdir(parents=True, exist_ok=True)
        self._store = SqliteStore(settings.store, self._frame)
        try:
            options = _engine_options(settings, self._frame)
            self.switchboard = Switchboard(
                self._frame,
                self._limits,
                options,
                virtual_time=settings.virtual_time,
                lease_ms=_lease_ms(settings),
            )
            retention = Retention(self._store, _retention_days(settings))
            self._pump = Pump(self.switchboard, self._store, self._clock, retention=retention)
            self._pump.state = ServerState.RECOVERING
            self._listener = Listener(
                self._pump, Access(settings.tokens), settings.keepalive_ms, settings.porters
            )
            self.port = await self._listener.start(settings.host, settings.port, _tls(settings))
            try:
                await asyncio.to_thread(self._warm_up)
                await asyncio.to_thread(self._recover)
            except BaseException:
                await self._listener.stop(0.0)
                raise
            self._pumping = asyncio.create_task(self._pump.run())
            self._pump.state = ServerState.SERVING
            await self._listener.serve()
        except BaseException:
            self._store.close()
            raise
        _log.info(
            "serving on %s:%d: %d objects, %d parked subscriptions recovered from %s",
            settings.host,
            self.port,
            len(self.switchboard.ledger.objects),
            len(self.switchboard.ledger.engine.subscriptions),
            settings.store,
        )

    def _warm_up(self) -> None:
        ready_kernels(self._frame, self.switchboard.ledger.engine.options, self._on_compiling)

    def _recover(self) -> None:
        self.switchboard.recover(self._store.recover())

    def spare_the_collector(self) -> None:
        """Take charge of this process's cycle collector: for a process that does nothing else."""
        self._pump.collector.take_over()

    async def stop(self) -> None:
        """Drain, finish what is under way, close the store. Raises what made the pump fail, if it did."""
        self._pump.drain()
        await self._listener.drain(_DRAIN_S)
        await self._listener.stop(_GRACE_S)
        self._pump.stop()
        try:
            await self._pumping
        finally:
            self._store.close()
        _log.info("stopped")

    async def run_until_signalled(self, on_ready: Callable[[Server], None]) -> None:
        """Wait for SIGTERM or SIGINT, or for the pump to fail; then stop.

        `on_ready` is called when signals are listened to: whoever it tells may stop the server.
        """
        signalled = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled.set)
        on_ready(self)
        waiting = asyncio.create_task(signalled.wait())
        await asyncio.wait({waiting, self._pumping}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await self.stop()


def _engine_options(settings: ServerSettings, frame: Frame) -> EngineOptions:
    low = frame.project(settings.area.lon_min, settings.area.lat_min)
    square = (0.0, 0.0, max(-low.x_m, -low.y_m))
    subscription_index = SUBSCRIPTION_INDEXES[settings.subscription_index]
    return EngineOptions(
        buffer_extra=None if settings.buffer_extra == "auto" else settings.buffer_extra,
        costs=CostModel(
            report=settings.report_cost,
            object=settings.object_cost,
            held=settings.held_cost,
            extra_max=settings.buffer_extra_max,
            ahead=settings.ahead,
            speed_mps=settings.assumed_speed_mps,
        ),
        margin_extra_max=settings.margin_buffer_max,
        object_index=OBJECT_INDEXES[settings.object_index],
        subscription_index=lambda: subscription_index(square),
    )


def _lease_ms(settings: ServerSettings) -> int:
    """In virtual time nobody is late unless that is asked for."""
    if settings.lease_ms is not None:
        return settings.lease_ms
    return 0 if settings.virtual_time else _LEASE_MS


def _retention_days(settings: ServerSettings) -> float:
    """In virtual time nobody is forgotten unless that is asked for."""
    if settings.subscription_retention_days is not None:
        return settings.subscription_retention_days
    return 0.0 if settings.virtual_time else _RETENTION_DAYS


def _tls(settings: ServerSettings) -> TlsFiles | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return TlsFiles(settings.tls_certificate.read_bytes(), settings.tls_key.read_bytes())


def _let_threads_finish() -> None:
    """Let a thread that wakes wait for a core until the one that runs there pauses, where there is a way.

    gRPC's threads wake several times for every message, and each time would interrupt the loop that they
    work for. Threads and processes begun later do as the one that begins them, so this comes first.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):  # a sandbox may forbid it; it only costs time
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


async def serve(
    settings: ServerSettings, on_ready: Callable[[Server], None], on_compiling: Report | None = None
) -> None:
    """Serve until signalled. `on_ready` is called once the port is open and signals are listened to."""
    _let_threads_finish()
    reserve()
    server = Server(settings, on_compiling=on_compiling)
    await server.start()
    server.spare_the_collector()
    sys.setswitchinterval(_SWITCH_S)
    await server.run_until_signalled(on_ready)
