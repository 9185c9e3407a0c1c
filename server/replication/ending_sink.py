"""Ends the sink of a cluster, for an operator who has access to the log."""

from __future__ import annotations

import secrets

from cluster.entries import SECOND_RULES, Entry, SetSink
from cluster.log import Log, LogError
from cluster.registry import SharedRecords

_ID_BYTES = 16


async def end_sink(log: Log, records: SharedRecords) -> None:
    """Let all nodes keep changes for the sink no longer, and delete those that wait.

    Raises
    ------
    LogError
        If a node has the sink, or does not know of sinks, or none runs; or if the log does not respond.
    """
    leases = await records.leases()
    if not leases:
        raise LogError("no node of the cluster runs: start one first")
    for lease in leases:
        if lease.rules < SECOND_RULES:
            raise LogError(f"node {lease.node.address} is of a version that knows no sink: there is none")
        if lease.has_sink:
            raise LogError(f"node {lease.node.address} has the sink: first start it without --sink")
    await log.append([Entry(0, SetSink(is_on=False), secrets.token_bytes(_ID_BYTES))])
