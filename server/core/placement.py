"""The contract of placement: whether this server serves a device. Without a cluster, it serves all."""

from __future__ import annotations

from typing import Protocol


class Placement(Protocol):
    """Where devices are served."""

    async def settled(self, device_id: str) -> None:
        """Wait until a server serves a device, for some seconds at most."""

    def require(self, device_id: str) -> None:
        """Require that this server serves a device now.

        Raises
        ------
        RefusedError
            ANOTHER_SERVER, if another server does; RECOVERING, if none does.
        """
