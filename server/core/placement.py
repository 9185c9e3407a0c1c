"""The contract of placement: whether this server serves a device. Without a cluster, it serves all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cluster.log import LogStream
from cluster.ownership import NodeState


class ClusterNode(NamedTuple):
    """A node of a cluster, as this server knows it."""

    address: str
    state: NodeState
    slot_count: int
    is_this: bool
    lease_age_ms: int
    """The time since this server has read the node's lease."""
    rules: int
    """The latest rules of applying that it knows."""


GAUGES = (
    "cluster_nodes",
    "cluster_slots",
    "cluster_lease_valid",
    "cluster_rules",
    "cluster_source",
    "cluster_sink",
    "cluster_log_offset",
    "cluster_stored_offset",
    "cluster_log_lag_ms",
    "cluster_devices_lagging",
)
"""Quantities of a node; 0 for a server by itself."""


class Placement(Protocol):
    """Where devices are served."""

    def nodes(self) -> list[ClusterNode]:
        """Return the nodes that are there, by address."""

    async def log_streams(self) -> list[LogStream]:
        """Return the streams of the log; empty if it does not respond within a second."""

    def gauges(self) -> dict[str, int]:
        """Return the quantities `GAUGES`."""

    def is_settled(self, device_id: str) -> bool:
        """Return whether a server serves a device, as far as this one knows without doubt."""

    async def settled(self, device_id: str) -> None:
        """Wait until `is_settled`, for some seconds at most."""

    def require(self, device_id: str, *, for_certain: bool = False) -> None:
        """Require that this server serves a device now.

        Parameters
        ----------
        device_id
            The device.
        for_certain
            Whether to require a valid lease, too. Without one, another server may have taken the device
            since, and changed its subscriptions.

        Raises
        ------
        RefusedError
            ANOTHER_SERVER, if another server does; RECOVERING, if none does, or it is not certain.
        """
