"""The fleet streams of this gateway, by tenant: opened when a device needs one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gateway.counters import Counters
from gateway.fleet_link import FleetLink
from nearcast.errors import Reason, RefusedError
from nearcast.transport.channel import Channel

_LINKS_MAX = 2
"""Streams of a tenant.

The server refuses a second hello of a device on one stream. So the hello of a device that is still
attached, which has another connection after a change of networks, goes over the other stream: the server
decides whether it takes over.
"""

_RETRY_MS = 1_000

IsServing = Callable[[], Awaitable[bool]]


class Fleet:
    """The streams of one tenant.

    Parameters
    ----------
    channel
        The connection to the server, with this gateway's token of the tenant.
    is_serving
        Returns whether the server serves.
    counters
        The counters of the gateway.
    """

    def __init__(self, channel: Channel, is_serving: IsServing, counters: Counters) -> None:
        self._channel = channel
        self._is_serving = is_serving
        self._counters = counters
        self._links: list[FleetLink] = []

    def link_for(self, device_id: str) -> FleetLink:
        """Return a stream for the hello of a device.

        Raises
        ------
        RefusedError
            DEVICE_IN_USE, if two other sockets are about to attach the device.
        """
        links = [link for link in self._links if link.is_open]
        free = next((link for link in links if device_id not in link.routes), None)
        if free is not None:
            return free
        if len(links) >= _LINKS_MAX:
            raise RefusedError(
                Reason.DEVICE_IN_USE,
                "hello.device_id",
                repr(device_id),
                "a device with at most one other connection to this gateway",
                retry_after_ms=_RETRY_MS,
            )
        link = FleetLink(self._channel, self._is_serving, self._forget)
        self._links.append(link)
        self._counters.streams += 1
        return link

    def _forget(self, link: FleetLink) -> None:
        self._links.remove(link)
        self._counters.streams -= 1

    async def close(self, timeout_s: float) -> None:
        """End the streams; their devices are detached."""
        links = list(self._links)
        for link in links:
            link.finish()
        await asyncio.gather(*(link.ended(timeout_s) for link in links))
        await self._channel.close()


class Fleets:
    """The fleets of all tenants.

    Parameters
    ----------
    channels
        The connections to the server, by tenant.
    is_serving
        Returns whether the server serves.
    counters
        The counters of the gateway.
    """

    def __init__(
        self, channels: Mapping[str, Channel], is_serving: IsServing, counters: Counters
    ) -> None:
        self._fleets = {
            tenant: Fleet(channel, is_serving, counters) for tenant, channel in channels.items()
        }

    def fleet(self, tenant: str) -> Fleet:
        """Return the fleet of a tenant.

        Raises
        ------
        RefusedError
            PERMISSION_DENIED, if this gateway has no token of the tenant.
        """
        found = self._fleets.get(tenant)
        if found is None:
            limit = "a tenant that this gateway serves"
            raise RefusedError(Reason.PERMISSION_DENIED, "token.tenant", repr(tenant), limit)
        return found

    async def close(self, timeout_s: float) -> None:
        """End all streams."""
        await asyncio.gather(*(fleet.close(timeout_s) for fleet in self._fleets.values()))
