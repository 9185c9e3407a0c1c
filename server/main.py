"""The composition root: store, coordinator, command loop and listener become a server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping

from identity.setup import Identity
from index.tables.growth import reserve
from nearcast.address import joined_address
from safe_region.earth.frame import Frame
from safe_region.extras import how_to_install
from safe_region.jit.ahead import Report
from server.assembly.alone import Alone
from server.assembly.area import described, warn_of_distortion
from server.assembly.deployment import BridgeTask, Deployment, Feeds, Making
from server.assembly.parts import (
    engine_options,
    identity_by,
    limits_of,
    opened_feeds,
    require_place,
)
from server.clock import Clock
from server.errors import StoreError
from server.limits import Limits
from server.monitoring.monitoring import Monitoring
from server.runtime.lifecycle import ServerState
from server.runtime.warmup import logged, ready_kernels
from server.settings import ServerSettings
from server.store import SqliteStore, log_sqlite_version
from server.transport import Listener
from server.transport.wire_walk import warm_up_walk

_log = logging.getLogger(__name__)

_ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_PATIENCE_S = 2.0
"""How long a stopping server executes accepted commands; then it refuses the waiting ones."""

_DRAIN_S = 4.0
"""How long it waits for streams to end: a stalled device does not delay it."""

_GRACE_S = 0.5
"""How long it then lets calls finish."""

_SWITCH_S = 0.0002
"""How long a thread waits for the interpreter while another has it: look-ups are needed soon."""

_NOTHING_TO_READ = (
    "SIGHUP ignored: the server reloads certificates and keys when they change, and reads settings at "
    "its start only"
)


class Server:
    """A running server.

    Its parts are public: store, coordinator, command loop, listener, readings, node.

    Parameters
    ----------
    settings
        The settings of the server.
    limits
        Limits of commands.
    on_compiling
        Called with the number of compiled kernels, if any are missing on this machine; by default the
        progress is logged.
    """

    def __init__(
        self,
        settings: ServerSettings,
        limits: Limits | None = None,
        on_compiling: Report | None = None,
    ) -> None:
        if settings.processes > 1:
            raise ValueError("processes must be 1: only the command line starts several")
        self.settings = settings
        self._frame = Frame.of(settings.area)
        self._limits = limits or limits_of(settings)
        self._on_compiling = on_compiling or logged()
        self.port = 0
        self.metrics_port = 0
        """The port for Prometheus, if there is one."""
        self._bridge: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the store, listen, recover, serve.

        While it recovers, calls are refused with RECOVERING, and the health status is NOT_SERVING.

        Raises
        ------
        FileError
            If keys or certificates cannot be used.
        StoreError
            If the store cannot be used.
        PortError
            If the server cannot listen on the address.
        MetricsPortError
            If it cannot listen on the address for metrics.
        BridgeError
            If source or sink cannot be used.
        TracingError
            If objects are to be traced and the library is missing.
        LogError
            If the log cannot be used.
        """
        settings = self.settings
        identity = identity_by(settings)
        self.monitoring = Monitoring(settings)
        warn_of_distortion(self._frame)
        self.metrics_port = self.monitoring.metrics_port
        try:
            await self._start(settings, identity)
        except BaseException:
            self.monitoring.close()
            raise

    async def _start(self, settings: ServerSettings, identity: Identity) -> None:
        require_place(settings)
        self.store = SqliteStore(
            settings.store,
            self._frame,
            has_sink=bool(settings.sink) and not settings.log,
            accept_loss=settings.accept_loss,
        )
        try:
            feeds = opened_feeds(settings)
            self._deployment = await _deployed(settings, self._limits, self.store, self._making(identity))
        except BaseException:
            self.store.discard()
            raise
        try:
            await self._begin(settings, identity, feeds)
        except BaseException:
            await self._deployment.stop()
            self.store.discard()
            raise
        self._log_start()

    def _making(self, identity: Identity) -> Making:
        settings, frame, limits = self.settings, self._frame, self._limits
        coordinator = {
            "frame": frame,
            "limits": limits,
            "options": engine_options(settings, frame, limits),
            "clock": Clock(is_virtual=settings.virtual_time),
            "lease_ms": settings.lease_ms,
            "serves_tenants": bool(settings.tenants),
        }
        command_loop = {
            "traces": self.monitoring.object_traces(),
            "state": ServerState.RECOVERING,
            "tenants": identity.authenticator.tenants,
        }
        return Making(coordinator, command_loop, settings.subscription_retention_days)

    async def _begin(self, settings: ServerSettings, identity: Identity, feeds: Feeds) -> None:
        """Listen, continue from the store and from the log, and serve."""
        deployment = self._deployment
        self.coordinator, self.command_loop = deployment.coordinator, deployment.command_loop
        self.node = deployment.node
        self.readings = self.monitoring.begin(self.command_loop, lambda: identity.authenticator.accounts)
        self.listener = Listener(
            self.command_loop,
            identity.authenticator,
            settings.keepalive_ms,
            self.readings,
            reflects=settings.reflection,
        )
        await deployment.offer_store(self.listener, identity.authenticator)
        self.port = await self.listener.start(settings.host, settings.port, identity.certificates)
        bridge = await self._continued(feeds)
        self.command_loop.serve()
        self._bridge = [asyncio.create_task(one.run()) for one in bridge]
        await self.listener.serve()

    async def _continued(self, feeds: Feeds) -> list[BridgeTask]:
        """Continue from the store, and from the log, while calls are refused; return source and sink."""
        deployment = self._deployment
        try:
            await asyncio.to_thread(self._warm_up)
            await deployment.copy_store(self._address())
            source_offsets = await asyncio.to_thread(self._recover)
            deployment.follow(self.listener.report_health, self._address())
            bridge = deployment.bridged(feeds, source_offsets)
            self._loop_task = asyncio.create_task(self.command_loop.run())
            await self._catch_up()
        except BaseException:
            await self.listener.stop(0.0)
            raise
        return bridge

    def _log_start(self) -> None:
        log_sqlite_version()
        _log.info("service area: %s", described(self._frame))
        _log.info(
            "serving on %s: %d objects, %d parked subscriptions recovered from %s",
            joined_address(self.settings.host, self.port),
            len(self.coordinator.matching.objects),
            self.coordinator.matching.engine.subscription_count,
            self.settings.store,
        )

    def _warm_up(self) -> None:
        options = self.coordinator.matching.engine.options
        counters = self.coordinator.counters

        def report(done: int, total: int) -> None:
            counters.kernels_missing = total - done
            self._on_compiling(done, total)

        counters.kernels_compiled = ready_kernels(self._frame, options, report, warm_up_walk)
        counters.kernels_missing = 0

    def _recover(self) -> Mapping[str, str]:
        """Recover; return the offsets up to which the source was read."""
        source_offsets = self._deployment.recover()
        if not self.coordinator.counts_windows and self.coordinator.matching.has_count_window:
            raise StoreError(
                f"store {self.settings.store} has subscriptions with a window of a number of objects, "
                "which a server of several tenants does not support: end them, or serve without tenants"
            )
        return source_offsets

    async def _catch_up(self) -> None:
        try:
            await self._deployment.catch_up()
        except BaseException:
            self.command_loop.stop()
            await self._loop_task
            raise

    def _address(self) -> str:
        """Return where devices reach this server."""
        settings = self.settings
        if settings.advertise:
            return settings.advertise
        host = socket.gethostname() if settings.host in _ALL_ADDRESSES else settings.host
        return joined_address(host, self.port)

    @property
    def is_running(self) -> bool:
        """Whether the command loop of a started server executes commands."""
        return not self._loop_task.done()

    def spare_the_collector(self) -> None:
        """Take control of this process's cycle collector: for a process that only serves."""
        self.command_loop.gc_control.take_over()

    async def stop(self) -> None:
        """Drain, finish commands in progress, close the store. Raises an error of the command loop."""
        for task in self._bridge:
            task.cancel()
        await asyncio.gather(*self._bridge, return_exceptions=True)
        if self.is_running:
            await self._deployment.hand_over()
        self.command_loop.drain(_PATIENCE_S)
        await self.listener.drain(_DRAIN_S)
        await self.listener.stop(_GRACE_S)
        await self._deployment.stop()
        self.command_loop.stop()
        try:
            await self._loop_task
        finally:
            self.store.close()
            await asyncio.to_thread(self.monitoring.close)
        _log.info("stopped")

    async def run_until_signalled(self, on_ready: Callable[[Server], None]) -> None:
        """Wait for SIGTERM or SIGINT, or a failure of the command loop; then stop. SIGHUP is logged only.

        `on_ready` is called when the signal handlers are in place, so that the server can be stopped.
        """
        signalled = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled.set)
        loop.add_signal_handler(signal.SIGHUP, _log.info, _NOTHING_TO_READ)
        on_ready(self)
        waiting = asyncio.create_task(signalled.wait())
        # The bridge is not awaited: its failures are states, and no feed ends the server.
        following = self._deployment.tasks
        running = {waiting, self._loop_task, *following}
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        failed = [task for task in following if task.done()]
        await self.stop()
        for task in failed:
            task.result()  # raises why the log cannot be applied any further


async def _deployed(
    settings: ServerSettings, limits: Limits, store: SqliteStore, making: Making
) -> Deployment:
    """Return a server by itself, or a node that has joined the log.

    Raises
    ------
    LogError
        If the log cannot be used, or the library is missing.
    """
    if not settings.log:
        return Alone(store, making)
    from cluster.log import LogError  # noqa: PLC0415

    try:
        from server.assembly.member import Member, joined_node  # noqa: PLC0415
    except ImportError as error:
        raise LogError(f"a log needs {error.name}: {how_to_install('cluster')}") from error
    node = await joined_node(settings, Frame.of(settings.area), limits)
    try:
        return Member(node, settings, store, making)
    except BaseException:
        await node.stop()
        raise


def _let_threads_finish() -> None:
    """Let waking threads wait for a core until the running one pauses, where the system supports it.

    gRPC's threads wake several times for every message, and each time would interrupt the loop that they
    work for. Threads and processes started later inherit this, so this comes first.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):  # a sandbox may forbid it, which only costs time
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def serve(
    settings: ServerSettings, on_ready: Callable[[Server], None], on_compiling: Report | None = None
) -> None:
    """Serve until signalled. `on_ready` is called once the port is open and signals are handled."""
    _let_threads_finish()
    reserve()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings, on_ready, on_compiling))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's loop if it is installed; None for asyncio's own loop.

    It reduces the CPU time of an echo server by a third.
    """
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(
    settings: ServerSettings, on_ready: Callable[[Server], None], on_compiling: Report | None
) -> None:
    server = Server(settings, on_compiling=on_compiling)
    await server.start()
    server.spare_the_collector()
    sys.setswitchinterval(_SWITCH_S)
    await server.run_until_signalled(on_ready)
