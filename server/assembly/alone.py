"""A server by itself: it decides everything, and its store has everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from identity.authenticator import Authenticator
from server.assembly.deployment import BridgeTask, Deployment, Feeds, Making
from server.core.coordinator import Coordinator
from server.errors import StoreError
from server.runtime.command_loop import CommandLoop
from server.runtime.retention import StoreRetention
from server.store import SqliteStore
from server.transport import Listener


class Alone(Deployment):
    """The deployment of a server by itself.

    Parameters
    ----------
    store
        Of the server.
    making
        How its parts are made.
    """

    def __init__(self, store: SqliteStore, making: Making) -> None:
        self._store = store
        self.coordinator = Coordinator(**making.coordinator)
        retention = StoreRetention(store, making.retention_days)
        self.command_loop = CommandLoop(self.coordinator, store, retention, **making.command_loop)

    async def offer_store(self, listener: Listener, authenticator: Authenticator) -> None:
        """Do nothing: there are no other nodes."""

    async def copy_store(self, address: str) -> None:
        """Do nothing: there is no other store."""

    def recover(self) -> Mapping[str, str]:
        """Recover from the store; return the offsets up to which the source was read."""
        found, path = self._store.recover(), self._store.path
        if found.log.log_id:
            raise StoreError(f"store {path} has the objects of a log: give --log, or use another store")
        self.coordinator.recover(found)
        return found.source_offsets

    def follow(self, on_health: Callable[[bool], Awaitable[None]], address: str) -> None:
        """Do nothing: there is no log."""

    def bridged(self, feeds: Feeds, source_offsets: Mapping[str, str]) -> list[BridgeTask]:
        """Return the source and the sink, if any."""
        if feeds == Feeds():
            return []
        from cluster.entries import Cursor  # noqa: PLC0415
        from server.bridge.sink import Sink, StoredChanges  # noqa: PLC0415
        from server.bridge.source import Source  # noqa: PLC0415

        coordinator, execute = self.coordinator, self.command_loop.execute
        found: list[BridgeTask] = []
        if feeds.source is not None:
            cursors = {stream: Cursor(offset, 0) for stream, offset in source_offsets.items()}
            found.append(Source(feeds.source, cursors, coordinator, execute))
        if feeds.sink is not None:
            changes = StoredChanges(self._store, execute)
            found.append(Sink(feeds.sink, changes, coordinator.counters))
        return found

    async def catch_up(self) -> None:
        """Do nothing: there is no log."""

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """None beside the command loop."""
        return []

    async def hand_over(self) -> None:
        """Do nothing: there are no other nodes."""

    async def stop(self) -> None:
        """Do nothing: there is no log."""
