"""The fleet streams of this gateway, by tenant and server: opened when a device needs one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gateway.counters import Counters
from gateway.fleet_link import FleetLink
from nearcast.errors import Reason, RefusedError
from nearcast.transport.channel import Channel
from nearcast.transport.servers import Servers

_LINKS_MAX = 2
"""Streams of a tenant to one server.

The server refuses a second hello of a device on one stream. So the hello of a device that is still
attached, which has another connection after a change of networks, goes over the other stream: the server
decides whether it takes over.
"""

_SERVERS_MAX = 256
"""Servers to which a tenant has streams."""

_RETRY_MS = 1_000

IsServing = Callable[[], Awaitable[bool]]


class Fleet:
    """The streams of one tenant.

    Parameters
    ----------
    servers
        The servers, with this gateway's token of the tenant.
    is_serving
        Returns whether a server serves.
    counters
        The counters of the gateway.
    """

    def __init__(self, servers: Servers, is_serving: IsServing, counters: Counters) -> None:
        self._servers = servers
        self._is_serving = is_serving
        self._counters = counters
        self._links: list[FleetLink] = []

    def link_for(self, device_id: str, nonce: bytes, address: str = "") -> FleetLink:
        """Return a stream for the hello of a device.

        Parameters
        ----------
        device_id
            The device.
        nonce
            The nonce in the hello.
        address
            The server that another one has named; empty for any server of the list.

        Raises
        ------
        RefusedError
            RECOVERING, if two other sockets have attached the device, or are about to;
            ANOTHER_SERVER, if the address is not valid or a token would be sent to it unencrypted.
        """
        channel = self._servers.at(address) if address else self._servers.current
        links = [link for link in self._links if link.is_open and link.channel is channel]
        free = next((link for link in links if _is_free(link, device_id, nonce)), None)
        if free is not None:
            return free
        if len(links) >= _LINKS_MAX:
            raise RefusedError(
                Reason.RECOVERING,
                "hello.device_id",
                repr(device_id),
                "a device with at most one other connection to this gateway; try again",
                retry_after_ms=_RETRY_MS,
            )
        return self._opened(channel)

    def pass_over(self, link: FleetLink) -> None:
        """Send the next hellos to another server of the list than that of a stream."""
        self._servers.after(link.channel)

    def _opened(self, channel: Channel) -> FleetLink:
        """Open a stream.

        Raises
        ------
        RefusedError
            TOO_MANY, if there are streams to too many servers.
        """
        if len({link.channel for link in self._links} | {channel}) > _SERVERS_MAX:
            limit = f"one of at most {_SERVERS_MAX}"
            raise RefusedError(Reason.TOO_MANY, "server", "another one", limit)
        is_only = self._servers.is_only(channel)
        link = FleetLink(channel, self._is_serving, self._forget, waits=is_only)
        self._servers.use(channel)
        self._links.append(link)
        self._counters.streams += 1
        return link

    def _forget(self, link: FleetLink) -> None:
        """Remove a stream that has ended; the next hellos go to another server of the list."""
        self._links.remove(link)
        self._counters.streams -= 1
        self.pass_over(link)
        self._servers.release(link.channel)

    async def close(self, timeout_s: float) -> None:
        """End the streams; their devices are detached."""
        links = list(self._links)
        for link in links:
            link.finish()
        await asyncio.gather(*(link.ended(timeout_s) for link in links))
        await self._servers.close()


def _is_free(link: FleetLink, device_id: str, nonce: bytes) -> bool:
    """Return whether the hello of a device may go over a stream, perhaps in the place of another socket.

    On another stream, the server might process the later hello before the earlier one.
    """
    route = link.routes.get(device_id)
    return route is None or route.yields_to(nonce)


class Fleets:
    """The fleets of all tenants.

    Parameters
    ----------
    servers
        The servers, by tenant.
    is_serving
        Returns whether a server serves.
    counters
        The counters of the gateway.
    """

    def __init__(self, servers: Mapping[str, Servers], is_serving: IsServing, counters: Counters) -> None:
        self._fleets = {
            tenant: Fleet(reached, is_serving, counters) for tenant, reached in servers.items()
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
