"""What differs between a server by itself (`alone`) and a node of a cluster (`member`)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from identity.authenticator import Authenticator
from server.core.coordinator import Coordinator
from server.runtime.command_loop import CommandLoop
from server.transport import Listener

if TYPE_CHECKING:
    from server.bridge.feeds import SinkFeed, SourceFeed
    from server.replication.node import Node


class Making(NamedTuple):
    """How the coordinator and the command loop of a server are made."""

    coordinator: Mapping[str, Any]
    """The arguments of the coordinator, by name."""
    command_loop: Mapping[str, Any]
    """Those of the command loop, without coordinator, store and retention."""
    retention_days: float
    """How long devices are remembered that are not seen; 0 for no limit."""


class Feeds(NamedTuple):
    """The feeds of the bridge."""

    source: SourceFeed | None = None
    sink: SinkFeed | None = None


class BridgeTask(Protocol):
    """A task beside the command loop."""

    async def run(self) -> None:
        """Run until it is cancelled."""
        ...


class Deployment(ABC):
    """A server's coordinator and command loop, and how it stands to other servers.

    The methods are called in the order in which they are here.
    """

    coordinator: Coordinator
    command_loop: CommandLoop
    node: Node | None = None
    """The node of a cluster; None for a server by itself."""

    @abstractmethod
    async def offer_store(self, listener: Listener, authenticator: Authenticator) -> None:
        """Let other nodes copy the store. Before the listener starts.

        Raises
        ------
        LogError
            If the log does not respond.
        """

    @abstractmethod
    async def copy_store(self, address: str) -> None:
        """Take the content of the store of another node, if the log does not lead on from the own one.

        Parameters
        ----------
        address
            Where devices and nodes reach this server.

        Raises
        ------
        LogError
            If the log lacks messages that the store needs, and no node sends its store.
        StoreError
            If the store cannot be used.
        """

    @abstractmethod
    def recover(self) -> Mapping[str, str]:
        """Recover from the store; return the offsets up to which the source was read. It blocks.

        Raises
        ------
        StoreError
            If the store cannot be used.
        LogError
            If this version does not know the rules in force.
        """

    @abstractmethod
    def follow(self, on_health: Callable[[bool], Awaitable[None]], address: str) -> None:
        """Connect the command loop with the log. Before it runs.

        Parameters
        ----------
        on_health
            Called with whether the server is up to date, when this changes.
        address
            See `copy_store`.
        """

    @abstractmethod
    def bridged(self, feeds: Feeds, source_offsets: Mapping[str, str]) -> list[BridgeTask]:
        """Return the source and the sink, if any; for a node, what runs them while it is to."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Apply the log, while the command loop runs and refuses calls.

        Raises
        ------
        LogError
            If the log cannot be applied, or does not respond.
        """

    @property
    @abstractmethod
    def tasks(self) -> list[asyncio.Task[None]]:
        """Tasks without which the server cannot continue, beside the command loop."""

    @abstractmethod
    async def hand_over(self) -> None:
        """Let other nodes take the devices, if there are any."""

    @abstractmethod
    async def stop(self) -> None:
        """Leave the log."""
