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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from engine import CostModel, EngineOptions
from engine.options import StationaryPolicy
from identity.authenticator import Authenticator
from identity.principal import Role
from identity.quotas import Accounts
from identity.setup import Identity, identity_of, quota_of_device, quota_of_many
from index.catalogue import (
    CLAUSE_INDEXES,
    MOVING_INDEXES,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
    weighted_index,
)
from index.square import Square
from index.tables.growth import reserve
from nearcast.address import joined_address
from safe_region.earth.distortion import distortion
from safe_region.earth.frame import Frame
from safe_region.extras import how_to_install
from safe_region.jit.ahead import Report
from server.clock import Clock
from server.core.coordinator import Coordinator
from server.errors import BridgeError, StoreError
from server.limits import Limits, dead_connection_ms
from server.log_settings import LogSettings
from server.monitoring.monitoring import Monitoring
from server.runtime.command_loop import CommandLoop
from server.runtime.lifecycle import ServerState
from server.runtime.retention import Retention, StoreRetention
from server.runtime.warmup import logged, ready_kernels
from server.settings import ServerSettings
from server.store import SqliteStore, log_sqlite_version, require_database
from server.transport import Listener
from server.transport.wire_walk import warm_up_walk

if TYPE_CHECKING:
    from cluster.jetstream import JetStreamLog, JetStreamOptions
    from server.bridge.feeds import SinkFeed, SourceFeed
    from server.replication.node import Node

_log = logging.getLogger(__name__)

_HAND_OVER_S = 10.0
"""How long other nodes of a cluster may take to take the devices."""
_ALL_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_PATIENCE_S = 2.0
"""How long a stopping server executes accepted commands; then it refuses the waiting ones."""

_DRAIN_S = 4.0
"""How long it waits for streams to end: a stalled device does not delay it."""

_GRACE_S = 0.5
"""How long it then lets calls finish."""

_SWITCH_S = 0.0002
"""How long a thread waits for the interpreter while another has it: look-ups are needed soon."""

_DISTORTION_MAX = 0.01
"""Relative error of distances on the plane from which operators are warned."""

_NOTHING_TO_READ = (
    "SIGHUP ignored: the server reloads certificates and keys when they change, and reads settings at "
    "its start only"
)


class _Bridge(Protocol):
    """A task beside the command loop."""

    async def run(self) -> None: ...


class Feeds(NamedTuple):
    """The feeds of the bridge."""

    source: SourceFeed | None = None
    sink: SinkFeed | None = None


class Server:
    """A running server. Its parts are public: store, coordinator, command loop, listener, readings.

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
        self.node: Node | None = None
        """The node of a cluster, with a log."""

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
        identity = _identity_of(settings)
        self.monitoring = Monitoring(settings)
        _warn_of_distortion(self._frame)
        self.metrics_port = self.monitoring.metrics_port
        try:
            await self._start(settings, identity)
        except BaseException:
            self.monitoring.close()
            raise

    async def _start(self, settings: ServerSettings, identity: Identity) -> None:
        _require_place(settings)
        self.store = SqliteStore(
            settings.store,
            self._frame,
            has_sink=bool(settings.sink) and not settings.log,
            accept_loss=settings.accept_loss,
        )
        try:
            feeds = opened_feeds(settings)
            self.node = await _joined(settings, self._frame, self._limits)
            self._make(settings, identity)
            await self._offer_snapshots(identity.authenticator)
            self.port = await self.listener.start(settings.host, settings.port, identity.certificates)
            bridge = await self._continued(feeds)
            self.command_loop.serve()
            self._bridge = [asyncio.create_task(one.run()) for one in bridge]
            await self.listener.serve()
        except BaseException:
            if self.node is not None:
                await self.node.stop()
            self.store.discard()
            raise
        self._log_start()

    def _make(self, settings: ServerSettings, identity: Identity) -> None:
        """Make the parts that use the store, before anything is read from it."""
        options = _engine_options(settings, self._frame, self._limits)
        coordinator_type, loop_type = _types(self.node)
        self.coordinator = coordinator_type(
            self._frame,
            self._limits,
            options,
            clock=Clock(is_virtual=settings.virtual_time),
            lease_ms=settings.lease_ms,
            serves_tenants=bool(settings.tenants),
        )
        retention = self._retention(settings.subscription_retention_days)
        self.command_loop = loop_type(
            self.coordinator,
            self.store,
            retention,
            traces=self.monitoring.object_traces(),
            state=ServerState.RECOVERING,
            tenants=identity.authenticator.tenants,
        )
        self.readings = self.monitoring.begin(self.command_loop, lambda: identity.authenticator.accounts)
        self.listener = Listener(
            self.command_loop,
            identity.authenticator,
            settings.keepalive_ms,
            self.readings,
            reflects=settings.reflection,
        )

    async def _continued(self, feeds: Feeds) -> list[_Bridge]:
        """Continue from the store, and from the log, while calls are refused; return source and sink."""
        try:
            await asyncio.to_thread(self._warm_up)
            await self._copy_store()
            source_offsets = await asyncio.to_thread(self._recover)
            self._follow()
            bridge = self._bridged(feeds, source_offsets)
            self._loop_task = asyncio.create_task(self.command_loop.run())
            if self.node is not None:
                await self._catch_up(self.node)
        except BaseException:
            await self.listener.stop(0.0)
            raise
        return bridge

    def _log_start(self) -> None:
        log_sqlite_version()
        _log.info("service area: %s", _described(self._frame))
        _log.info(
            "serving on %s: %d objects, %d parked subscriptions recovered from %s",
            joined_address(self.settings.host, self.port),
            len(self.coordinator.matching.objects),
            self.coordinator.matching.engine.subscription_count,
            self.settings.store,
        )

    def _retention(self, days: float) -> Retention:
        """Return what finds the devices to be forgotten: in the store, or for a node in its slots."""
        if self.node is None:
            return StoreRetention(self.store, days)
        from server.replication.coordinator import ReplicatedCoordinator  # noqa: PLC0415
        from server.replication.retention import SlotRetention  # noqa: PLC0415

        assert isinstance(self.coordinator, ReplicatedCoordinator)  # noqa: S101 - for the type checker
        return SlotRetention(self.coordinator, days)

    def _warm_up(self) -> None:
        options = self.coordinator.matching.engine.options
        count = ready_kernels(self._frame, options, self._on_compiling, warm_up_walk)
        self.coordinator.counters.kernels_compiled = count

    async def _offer_snapshots(self, authenticator: Authenticator) -> None:
        """Let other nodes of a cluster, if there is one, copy the store of this one."""
        if self.node is None:
            return
        from server.replication.command_loop import ReplicatedCommandLoop  # noqa: PLC0415
        from server.transport.node_calls import offer_snapshots  # noqa: PLC0415

        assert isinstance(self.command_loop, ReplicatedCommandLoop)  # noqa: S101 - for the type checker
        token = await self.node.token()
        offer_snapshots(self.listener, authenticator, self.command_loop, token)

    async def _copy_store(self) -> None:
        """Take the content of the store of another node, if the log does not lead on from the own one."""
        if self.node is None:
            return
        from server.transport.node_calls import (  # noqa: PLC0415
            fetch_with,
            node_credentials,
            warn_of_plaintext,
        )

        settings = self.settings
        files = {
            "certificate": settings.tls_certificate,
            "key": settings.tls_key,
            "roots": settings.tls_node_roots,
        }
        tls = node_credentials(files)
        if settings.jwks is not None or settings.tokens:
            warn_of_plaintext(self._address(), tls)
        fetch = fetch_with(await self.node.key(), tls)
        await self.node.prepare(self.store, fetch, self._address())

    def _recover(self) -> Mapping[str, str]:
        """Recover; return the offsets up to which the source was read."""
        found, path = self.store.recover(), self.settings.store
        if self.node is not None:
            self.node.accept(found, str(path))
        elif found.log.log_id:
            raise StoreError(f"store {path} has the objects of a log: give --log, or use another store")
        self.coordinator.recover(found)
        if not self.coordinator.counts_windows and self.coordinator.matching.has_count_window:
            raise StoreError(
                f"store {path} has subscriptions with a window of a number of objects, which a server of "
                "several tenants does not support: end them, or serve without tenants"
            )
        return found.source_offsets

    def _follow(self) -> None:
        """Connect the command loop with the log, if there is one."""
        if self.node is not None:
            from server.replication.command_loop import ReplicatedCommandLoop  # noqa: PLC0415

            assert isinstance(self.command_loop, ReplicatedCommandLoop)  # noqa: S101 - for the type checker
            self.node.follow(self.command_loop, self.listener.report_health, self._address())

    def _address(self) -> str:
        """Return where devices reach this server."""
        settings = self.settings
        if settings.advertise:
            return settings.advertise
        host = socket.gethostname() if settings.host in _ALL_ADDRESSES else settings.host
        return joined_address(host, self.port)

    async def _catch_up(self, node: Node) -> None:
        """Apply the log, while the command loop runs and refuses calls."""
        try:
            await node.start()
        except BaseException:
            self.command_loop.stop()
            await self._loop_task
            raise

    def _bridged(self, feeds: Feeds, source_offsets: Mapping[str, str]) -> list[_Bridge]:
        """Return the source and the sink, if any; for a node, what runs them while it is to."""
        if feeds == Feeds():
            return []
        if self.node is not None:
            return self._bridged_node(self.node, feeds)
        from cluster.entries import Cursor  # noqa: PLC0415
        from server.bridge.sink import Sink, StoredChanges  # noqa: PLC0415
        from server.bridge.source import Source  # noqa: PLC0415

        coordinator, execute = self.coordinator, self.command_loop.execute
        found: list[_Bridge] = []
        if feeds.source is not None:
            cursors = {stream: Cursor(offset, 0) for stream, offset in source_offsets.items()}
            found.append(Source(feeds.source, cursors, coordinator, execute))
        if feeds.sink is not None:
            changes = StoredChanges(self.store, execute)
            found.append(Sink(feeds.sink, changes, coordinator.counters))
        return found

    def _bridged_node(self, node: Node, feeds: Feeds) -> list[_Bridge]:
        from server.replication.command_loop import ReplicatedCommandLoop  # noqa: PLC0415
        from server.replication.node_feeds import kept_sink, kept_source  # noqa: PLC0415

        loop, slots = self.command_loop, node.slots
        assert isinstance(loop, ReplicatedCommandLoop)  # noqa: S101 - for the type checker
        assert slots is not None  # noqa: S101 - for the type checker
        found: list[_Bridge] = []
        if feeds.source is not None:
            feeds.source.close()  # it can be opened, which is all that is needed now
            found.append(kept_source(slots.placement, loop, self.settings.source))
        if feeds.sink is not None:
            found.append(kept_sink(slots.placement, loop, feeds.sink))
        return found

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
        if self.node is not None and self.is_running:
            await self.node.hand_over(_HAND_OVER_S)
        self.command_loop.drain(_PATIENCE_S)
        await self.listener.drain(_DRAIN_S)
        await self.listener.stop(_GRACE_S)
        if self.node is not None:
            await self.node.stop()
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
        following = [] if self.node is None else self.node.tasks
        running = {waiting, self._loop_task, *following}
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        failed = [task for task in following if task.done()]
        await self.stop()
        for task in failed:
            task.result()  # raises why the log cannot be applied any further


async def _joined(settings: ServerSettings, frame: Frame, limits: Limits) -> Node | None:
    """Join the log, if there is one.

    Raises
    ------
    LogError
        If it cannot be used.
    """
    if not settings.log:
        return None
    from cluster.key_registry import KeyRegistry  # noqa: PLC0415
    from cluster.key_shared_records import KeySharedRecords  # noqa: PLC0415
    from server.replication.founding import founding_of, joined  # noqa: PLC0415
    from server.replication.node import Node  # noqa: PLC0415

    log = await _opened_log(settings)
    try:
        founding = founding_of(frame, limits, is_virtual=settings.virtual_time)
        records = KeySharedRecords(log.keys)
        log_id = await joined(log, records, founding)
        keep_s = 3_600.0 * settings.log_keep_hours
        return Node(
            log,
            log_id,
            KeyRegistry(log.keys),
            records,
            keep_s,
            can_read_source=bool(settings.source),
            can_write_sink=bool(settings.sink),
        )
    except BaseException:
        await log.close()
        raise


async def _opened_log(settings: ServerSettings) -> JetStreamLog:
    """Connect to the log.

    Raises
    ------
    LogError
        If it cannot be used, or the library is missing.
    """
    from cluster.log import LogError  # noqa: PLC0415

    try:
        from cluster.jetstream import open_log  # noqa: PLC0415
    except ImportError as error:
        raise LogError(f"a log needs {error.name}: {how_to_install('cluster')}") from error
    return await open_log(log_options(settings))


def log_options(settings: LogSettings) -> JetStreamOptions:
    """Return the settings of the log for `cluster.jetstream`, whose library must be there."""
    from cluster.access import LogAccess  # noqa: PLC0415
    from cluster.jetstream import JetStreamOptions  # noqa: PLC0415

    access = LogAccess(
        settings.log_ca,
        settings.log_cert,
        settings.log_key,
        settings.log_credentials,
        settings.log_user,
        settings.log_password_file,
        settings.log_token_file,
    )
    monitors = [one for one in settings.log_monitor.split(",") if one]
    return JetStreamOptions(
        settings.log.split(","),
        monitors,
        settings.log_stream,
        settings.log_replicas,
        settings.log_unsafe,
        access,
    )


def _types(node: Node | None) -> tuple[type[Coordinator], type[CommandLoop]]:
    """Return the types of the coordinator and the command loop."""
    if node is None:
        return Coordinator, CommandLoop
    from server.replication.command_loop import ReplicatedCommandLoop  # noqa: PLC0415
    from server.replication.coordinator import ReplicatedCoordinator  # noqa: PLC0415

    return ReplicatedCoordinator, ReplicatedCommandLoop


def _require_place(settings: ServerSettings) -> None:
    """Verify that the store exists, or make the folders for a new one.

    Raises
    ------
    StoreError
        If it does not exist and must not be created, or cannot be a file.
    """
    path = settings.store
    if path == Path(":memory:"):
        return
    try:
        if path.is_dir():
            raise StoreError(f"store is {str(path)!r}, must be a file, not a folder")
        if path.exists():
            return
        if not settings.accept_loss:
            require_database(path)
        if not settings.create:
            raise StoreError(f"store is {str(path)!r}, must exist; --create makes a new store")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store is {str(path)!r}, must be a file: {error.strerror}") from error


def _described(frame: Frame) -> str:
    """Return a description of a service area that reveals swapped coordinates."""
    width_km, height_km = (length_m / 1000.0 for length_m in frame.size_m)
    lon, lat = frame.lon0_deg, frame.lat0_deg
    north, east = "N" if lat >= 0.0 else "S", "E" if lon >= 0.0 else "W"
    return (
        f"{width_km:,.4g} km from west to east, {height_km:,.4g} km from south to north, "
        f"about {abs(lat):.4f} {north}, {abs(lon):.4f} {east}"
    )


def _warn_of_distortion(frame: Frame) -> None:
    """Warn if distances on the plane, which decide about results, are far from those on the ground."""
    found = distortion(frame)
    if found.error <= _DISTORTION_MAX:
        return
    _log.warning(
        "the distances of rankings and ranges have errors of up to %s (%s at latitude %.2f): serve "
        "smaller areas, each with its own server; see docs/operations.md",
        f"{100.0 * found.error:.1f} %" if found.error < 1.0 else "more than 100 %",
        found.direction.value,
        found.lat,
    )


def _engine_options(settings: ServerSettings, frame: Frame, limits: Limits) -> EngineOptions:
    low = frame.project(settings.area.lon_min, settings.area.lat_min)
    square = Square(0.0, 0.0, max(-low.x_m, -low.y_m))
    moving_index = MOVING_INDEXES.get(settings.moving_index)
    return EngineOptions(
        matches_max=limits.matches_max,
        stationary=StationaryPolicy(settings.stationary_buffer),
        maxdist_m=frame.maxdist_m,
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
        subscription_index=partial(SUBSCRIPTION_INDEXES[settings.subscription_index], square),
        weighted_index=partial(weighted_index(settings.subscription_index), square),
        clause_index=partial(CLAUSE_INDEXES[settings.clause_index], square),
        moving_index=None if moving_index is None else partial(moving_index, square),
    )


def _identity_of(settings: ServerSettings) -> Identity:
    quotas = {
        Role.DEVICE: quota_of_device(settings.device_rate, settings.device_share),
        Role.GATEWAY: quota_of_many(settings.gateway_rate, settings.gateway_share),
        Role.PUBLISHER: quota_of_many(settings.publisher_rate, settings.publisher_share),
        Role.OPERATOR: quota_of_many(settings.operator_rate, settings.operator_share),
    }
    accounts = Accounts(settings.tenant_share)
    return identity_of(settings, quotas, accounts, settings.tls_client_roots)


def limits_of(settings: ServerSettings) -> Limits:
    """Return the limits in the settings, and the defaults for the rest."""
    return Limits(
        margin_m_max=settings.margin_m_max,
        late_ms=settings.late_ms,
        dead_connection_ms=dead_connection_ms(settings.keepalive_ms),
        publisher_objects_max=settings.publisher_objects_max,
        publisher_bytes_max=settings.publisher_bytes_max,
        tenant_bytes_max=settings.tenant_bytes_max,
        tenant_windows_max=max(1, Limits().windows_max // (1 + len(settings.tenants))),
        tenant_objects_max=settings.tenant_objects_max,
        tenant_subscriptions_max=settings.tenant_subscriptions_max,
        connections_max=settings.connections_max,
    )


def opened_feeds(settings: ServerSettings) -> Feeds:
    """Return the feeds of the bridge.

    Raises
    ------
    BridgeError
        If a feed cannot be used.
    """
    if not settings.source and not settings.sink:
        return Feeds()
    try:
        from server.bridge.feeds import open_sink, open_source  # noqa: PLC0415
    except ImportError as error:
        raise BridgeError(f"source and sink need {error.name}: {how_to_install('bridge')}") from error
    try:
        return Feeds(
            open_source(settings.source) if settings.source else None,
            open_sink(settings.sink) if settings.sink else None,
        )
    except OSError as error:
        raise BridgeError(str(error)) from error


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
