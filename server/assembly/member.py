"""A node of a cluster: the log decides the order, and other nodes have the store as well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from cluster.jetstream import open_log
from cluster.key_registry import KeyRegistry
from cluster.key_shared_records import KeySharedRecords
from identity.authenticator import Authenticator
from safe_region.earth.frame import Frame
from server.assembly.deployment import BridgeTask, Deployment, Feeds, Making
from server.assembly.log_options import log_options
from server.limits import Limits
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.coordinator import ReplicatedCoordinator
from server.replication.founding import founding_of, joined
from server.replication.node import Node
from server.replication.retention import SlotRetention
from server.settings import ServerSettings
from server.store import SqliteStore
from server.transport import Listener
from server.transport.node_calls import (
    fetch_with,
    node_credentials,
    offer_snapshots,
    warn_of_plaintext,
)

_HAND_OVER_S = 10.0
"""How long other nodes may take to take the devices."""


class Member(Deployment):
    """The deployment of a node.

    Parameters
    ----------
    node
        The node, which has joined the log.
    settings
        Of the server.
    store
        Of the server.
    making
        How its parts are made.
    """

    coordinator: ReplicatedCoordinator
    command_loop: ReplicatedCommandLoop
    node: Node

    def __init__(self, node: Node, settings: ServerSettings, store: SqliteStore, making: Making) -> None:
        self.node = node
        self._settings = settings
        self._store = store
        coordinator = ReplicatedCoordinator(**making.coordinator)
        retention = SlotRetention(coordinator, making.retention_days)
        self.coordinator = coordinator
        self.command_loop = ReplicatedCommandLoop(coordinator, store, retention, **making.command_loop)

    async def offer_store(self, listener: Listener, authenticator: Authenticator) -> None:
        """Let other nodes copy the store, with a token that only nodes have."""
        token = await self.node.token()
        offer_snapshots(listener, authenticator, self.command_loop, token)

    async def copy_store(self, address: str) -> None:
        """Take the content of the store of another node, if the log does not lead on from the own one."""
        settings = self._settings
        files = {
            "certificate": settings.tls_certificate,
            "key": settings.tls_key,
            "roots": settings.tls_node_roots,
        }
        tls = node_credentials(files)
        if settings.jwks is not None or settings.tokens:
            warn_of_plaintext(address, tls)
        await self.node.prepare(self._store, fetch_with(await self.node.key(), tls), address)

    def recover(self) -> Mapping[str, str]:
        """Recover from the store. The offsets of the source are in the log."""
        found = self._store.recover()
        self.node.accept(found, self._store.path)
        self.coordinator.recover(found)
        return found.source_offsets

    def follow(self, on_health: Callable[[bool], Awaitable[None]], address: str) -> None:
        """Connect the command loop with the log."""
        self.node.follow(self.command_loop, on_health, address)

    def bridged(self, feeds: Feeds, source_offsets: Mapping[str, str]) -> list[BridgeTask]:  # noqa: ARG002 - see `recover`
        """Return what runs the source and the sink, if any, while this node is to."""
        if feeds == Feeds():
            return []
        from server.replication.node_feeds import kept_sink, kept_source  # noqa: PLC0415

        placement, loop = self.node.placement, self.command_loop
        found: list[BridgeTask] = []
        if feeds.source is not None:
            feeds.source.close()  # it can be opened, which is all that is needed now
            found.append(kept_source(placement, loop, self._settings.source))
        if feeds.sink is not None:
            found.append(kept_sink(placement, loop, feeds.sink))
        return found

    async def catch_up(self) -> None:
        """Apply the log, while the command loop runs and refuses calls."""
        await self.node.start()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of the node."""
        return self.node.tasks

    async def hand_over(self) -> None:
        """Let other nodes take the devices, if there are any."""
        await self.node.hand_over(_HAND_OVER_S)

    async def stop(self) -> None:
        """End the tasks of the node, and leave the log."""
        await self.node.stop()


async def joined_node(settings: ServerSettings, frame: Frame, limits: Limits) -> Node:
    """Join the log.

    Raises
    ------
    LogError
        If it cannot be used.
    """
    log = await open_log(log_options(settings))
    try:
        founding = founding_of(frame, limits, is_virtual=settings.virtual_time)
        records = KeySharedRecords(log.keys)
        log_id = await joined(log, records, founding)
        return Node(
            log,
            log_id,
            KeyRegistry(log.keys),
            records,
            3_600.0 * settings.log_keep_hours,
            can_read_source=bool(settings.source),
            can_write_sink=bool(settings.sink),
        )
    except BaseException:
        await log.close()
        raise
