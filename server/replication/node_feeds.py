"""The source and the sink of a node: their cursors are in the log. Needs the extra `bridge`."""

from __future__ import annotations

import asyncio

from cluster.entries import SetSink, SinkSent
from server.bridge.attempts import Attempts
from server.bridge.feeds import SinkFeed, open_source
from server.bridge.sink import Sink
from server.bridge.source import Source
from server.counters import Feed
from server.replication.cluster_placement import ClusterPlacement
from server.replication.command_loop import ReplicatedCommandLoop
from server.replication.feed_keeper import FeedKeeper
from server.store.mutations import Happened


class LogChanges:
    """The changes that wait for the sink of a cluster; see `Changes`.

    Parameters
    ----------
    command_loop
        That of the node which writes to the sink.
    """

    def __init__(self, command_loop: ReplicatedCommandLoop) -> None:
        self._command_loop = command_loop
        self._sink = command_loop.coordinator.sink

    async def begin(self) -> None:
        """Let all nodes keep changes from now on, unless they do."""
        if not self._sink.position.is_on:
            await self._command_loop.append(SetSink(is_on=True))

    @property
    def waiting_count(self) -> int:
        """The number of changes that wait."""
        return self._sink.waiting_count

    async def next(self, count_max: int) -> list[Happened]:
        """Return the next changes, from the store of this node."""
        await self._command_loop.store_applied()
        sent = self._sink.position.sent_number
        return await asyncio.to_thread(self._command_loop.store.unsent, count_max, sent)

    async def sent(self, number: int) -> None:
        """Let all nodes delete the changes up to a number."""
        await self._command_loop.append(SinkSent(number))


def kept_source(
    placement: ClusterPlacement, command_loop: ReplicatedCommandLoop, address: str
) -> FeedKeeper:
    """Return what runs the source at an address while this node is to."""
    coordinator = command_loop.coordinator

    async def make() -> Source:
        cursors = coordinator.source_cursors
        return Source(open_source(address), cursors, coordinator, command_loop.execute)

    attempts = Attempts("source", Feed.SOURCE, coordinator.counters)
    return FeedKeeper("source", lambda: placement.reads_source, make, attempts)


def kept_sink(
    placement: ClusterPlacement, command_loop: ReplicatedCommandLoop, feed: SinkFeed
) -> FeedKeeper:
    """Return what writes to a sink while this node is to."""
    changes, counters = LogChanges(command_loop), command_loop.coordinator.counters

    async def make() -> Sink:
        await changes.begin()
        return Sink(feed, changes, counters)

    return FeedKeeper("sink", lambda: placement.writes_sink, make, Attempts("sink", Feed.SINK, counters))
