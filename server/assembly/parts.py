"""What a server is made of, by its settings: limits, engine, identity, feeds, place of the store."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from engine import CostModel, EngineOptions
from engine.options import StationaryPolicy
from identity.principal import Role
from identity.quotas import Accounts
from identity.setup import Identity, identity_of, quota_of_device, quota_of_many, quota_of_publisher
from index.catalogue import (
    CLAUSE_INDEXES,
    MOVING_INDEXES,
    OBJECT_INDEXES,
    SUBSCRIPTION_INDEXES,
    weighted_index,
)
from index.square import Square
from safe_region.earth.frame import Frame
from safe_region.extras import how_to_install
from server.assembly.deployment import Feeds
from server.errors import BridgeError, StoreError
from server.limits import Limits, dead_connection_ms
from server.settings import ServerSettings
from server.store import require_database


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


def engine_options(settings: ServerSettings, frame: Frame, limits: Limits) -> EngineOptions:
    """Return the options of the engine."""
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


def identity_by(settings: ServerSettings) -> Identity:
    """Return how callers are known, and what each may use.

    Raises
    ------
    FileError
        If keys or certificates cannot be used.
    """
    quotas = {
        Role.DEVICE: quota_of_device(settings.device_rate, settings.device_share),
        Role.GATEWAY: quota_of_many(settings.gateway_rate, settings.gateway_share),
        Role.PUBLISHER: quota_of_publisher(settings.publisher_rate, settings.publisher_share),
        Role.OPERATOR: quota_of_many(settings.operator_rate, settings.operator_share),
    }
    accounts = Accounts(settings.tenant_share)
    return identity_of(settings, quotas, accounts, settings.tls_client_roots)


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


def require_place(settings: ServerSettings) -> None:
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
        if path.exists() and path.stat().st_size:
            return
        if not settings.accept_loss:
            require_database(path)
        if not settings.create:
            state = "is empty, must be a store" if path.exists() else "must exist"
            raise StoreError(f"store is {str(path)!r}, {state}; --create makes a new store")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store is {str(path)!r}, must be a file: {error.strerror}") from error
