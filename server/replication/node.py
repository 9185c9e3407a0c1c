"""A node of a cluster: the log, and the tasks that append to it, read it and keep its time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from cluster import ownership
from cluster.log import Log, LogError
from cluster.registry import Registry, SharedRecords
from identity.authenticator import node_token
from server.errors import StoreError
from server.replication.agreement import Agreement
from server.replication.appender import Appender
from server.replication.applier import Applier, require_rules
from server.replication.cluster_placement import ClusterPlacement
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.follower import Follower
from server.replication.joining import Fetch, Joiner
from server.replication.slot_keeper import SlotKeeper
from server.replication.trimmer import Trimmer
from server.replication.window_keeper import WindowKeeper
from server.store import SqliteStore
from server.store.mutations import LogPosition, Recovered

_ID_BYTES = 16
KEEP_S = 86_400.0
"""A day: so long may a node be away without copying the store of another one."""
_CANCEL_S = 0.2
"""Interval at which tasks that have not ended are cancelled again."""


class Node:
    """A node that has joined the log.

    Parameters
    ----------
    log
        The log.
    log_id
        Its id (`founding.joined`).
    registry
        The records of nodes and slots.
    records
        The other records that nodes share.
    keep_s
        For how long messages of the log are kept in any case.
    can_read_source, can_write_sink
        Whether this node has the source, and the sink, of the cluster.
    """

    def __init__(
        self,
        log: Log,
        log_id: str,
        registry: Registry,
        records: SharedRecords,
        keep_s: float = KEEP_S,
        *,
        can_read_source: bool = False,
        can_write_sink: bool = False,
    ) -> None:
        self._log = log
        self._registry = registry
        self._records = records
        self._log_id = log_id
        self._keep_s = keep_s
        self._can_read_source, self._can_write_sink = can_read_source, can_write_sink
        self.incarnation = secrets.token_bytes(_ID_BYTES)
        """Random, new at every start."""
        self._tasks: list[asyncio.Task[None]] = []
        self._position = LogPosition()
        self.slots: SlotKeeper | None = None
        """The slots of the node, once it follows the log."""

    async def key(self) -> bytes:
        """Return the secret of the nodes. Raises LogError if the log does not respond."""
        return await self._records.key()

    async def token(self) -> str:
        """Return the token of other nodes for this one. Raises LogError if the log does not respond."""
        return node_token(await self.key(), self.incarnation)

    def accept(self, found: Recovered, store_path: str) -> None:
        """Take the position of a store.

        Raises
        ------
        StoreError
            If its objects are not from this log.
        LogError
            If this version does not know the rules in force.
        """
        position = found.log
        require_rules(position.rules)
        if position.log_id and position.log_id != self._log_id:
            raise StoreError(f"store {store_path} has the objects of another log: use another store")
        if not position.log_id and found.next_object_id > 1:
            raise StoreError(f"store {store_path} has objects that are in no log: use another store")
        self._position = position

    async def prepare(self, store: SqliteStore, fetch: Fetch, address: str) -> None:
        """Let a store take the content of that of another node, if the log does not lead on from its own.

        Parameters
        ----------
        store
            Of this node.
        fetch
            Copies the store of another node.
        address
            Of this node.

        Raises
        ------
        LogError
            If the log lacks messages that the store needs, and no node sends its store.
        StoreError
            If the store is not of this log, or cannot be written.
        """
        self.accept(await asyncio.to_thread(store.recover), store.path)
        joiner = Joiner(self._log, self._log_id, self._records, fetch)
        await joiner.prepare(store, self._position.offset, address)

    @property
    def placement(self) -> ClusterPlacement:
        """Which node has which slots, once this one follows the log."""
        assert self.slots is not None  # noqa: S101 - for the type checker
        return self.slots.placement

    def follow(
        self,
        command_loop: ReplicatedCommandLoop,
        on_health: Callable[[bool], Awaitable[None]],
        address: str,
    ) -> None:
        """Connect a command loop, whose coordinator has recovered, with the log. Before it runs.

        Parameters
        ----------
        command_loop
            The command loop.
        on_health
            Called with whether the node is up to date, when this changes.
        address
            Where devices reach the node, as host:port.
        """
        coordinator = command_loop.coordinator
        clock = command_loop.log_clock
        self._is_virtual = coordinator.clock.is_virtual
        appender = Appender(self._log, int if self._is_virtual else clock.now_ms)
        applier = Applier(coordinator, self._log_id, self._position, appender.reply)
        node = ownership.Node(address, self.incarnation)
        self.slots = SlotKeeper(
            self._log,
            self._registry,
            node,
            command_loop,
            can_read_source=self._can_read_source,
            can_write_sink=self._can_write_sink,
        )
        placement = self.slots.placement
        self._windows = command_loop.window_keeper = WindowKeeper(command_loop, address)
        self._trimmer = Trimmer(self._log, placement.leases, address, self._keep_s)
        coordinator.placement = placement
        self._agreement = Agreement(self._log, applier, coordinator, placement)
        self._appender, self._follower = appender, Follower(self._log, command_loop, on_health)
        command_loop.follow(applier, appender, self.slots.write, self._follower.caught_up)

    async def start(self) -> None:
        """Apply what is in the log, while the command loop runs; then keep up with it.

        Raises
        ------
        LogError
            If the log cannot be applied, or does not respond.
        """
        reading = asyncio.create_task(self._follower.read())
        catching_up = asyncio.create_task(self._follower.catch_up())
        self._tasks = [reading, catching_up]
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
            raise LogError("the log has ended")
        catching_up.result()
        assert self.slots is not None  # noqa: S101 - for the type checker
        running = [self._appender.run(), self.slots.run(), self._trimmer.run()]
        running += [self._agreement.run(), self._windows.run()]
        if not self._is_virtual:
            running += [self._follower.keep_time(), self._follower.watch()]
        self._tasks = [reading, *map(asyncio.create_task, running)]

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of a node that has started. The node cannot continue without any of them."""
        return self._tasks

    async def hand_over(self, patience_s: float) -> None:
        """Let other nodes take the devices, if there are any."""
        if self.slots is not None:
            await self.slots.hand_over(patience_s)

    async def stop(self) -> None:
        """End the tasks, and leave the log."""
        pending = {task for task in self._tasks if not task.done()}
        while pending:  # before Python 3.12, `wait_for` may swallow a cancellation
            for task in pending:
                task.cancel()
            _, pending = await asyncio.wait(pending, timeout=_CANCEL_S)
        if self.slots is not None:
            await self.slots.end()
        await self._log.close()
