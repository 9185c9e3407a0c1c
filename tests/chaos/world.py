"""A server, its crowd, its publishers and its published, and the round that every fault is put into."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Self

import nearcast
from nearcast import RegionMode, UnavailableError
from safe_region.earth.frame import Area, Frame
from tests.chaos.audit import audit_lists, audit_objects, audit_searches, audit_subscriptions, settle
from tests.chaos.crowd import Crowd, Group
from tests.chaos.load import Load
from tests.chaos.published_objects import PublishedObjects
from tests.chaos.servers import AREA, ServerProcess
from tests.support.proxy import Proxy

_BEGIN_MS = 1_000_000
_PUBLISHERS = 4


class World:
    """Everything that a fault can strike.

    Parameters
    ----------
    folder
        Where the server keeps its store and its log.
    device_count
        How many devices.
    seed
        Decides everything but the timing.
    lifetimes_s
        Shortest and longest life of an object.
    virtual_time
        Whether `advance` drives the time.
    """

    def __init__(
        self,
        folder: Path,
        device_count: int,
        seed: int,
        lifetimes_s: tuple[float, float] = (60.0, 7200.0),
        *,
        virtual_time: bool = True,
    ) -> None:
        self.chance = random.Random(seed)
        self.violations: list[str] = []
        self.lists = 0
        """Lists compared with the oracle's."""
        self.modes: set[RegionMode] = set()
        """The region modes of their subscriptions."""
        self.clock_offset_s = 0.0
        """How far ahead the server's wall clock has ever been, in real time."""
        self.server = ServerProcess(folder, virtual_time=virtual_time)
        self.devices_proxy = Proxy(self.server.target)
        self.proxies = (self.devices_proxy, Proxy(self.server.target))
        """What is between the server and half of the devices, and half of the publishers."""
        self.published = PublishedObjects(Frame.of(Area(*map(float, AREA.split(",")))))
        self.crowd = Crowd(self.published, self.violations, self.chance)
        self._device_count = device_count
        self._lifetimes_s = lifetimes_s
        self._virtual_time = virtual_time

    async def __aenter__(self) -> Self:
        await self.server.start()
        near = self.server.target
        far, far_for_publishers = [await proxy.start() for proxy in self.proxies]
        self._clients = [await self._client(target) for target in (near, far_for_publishers)]
        publishers = [self._clients[i % 2][1].publisher() for i in range(_PUBLISHERS)]
        self.load = Load(self.crowd, publishers, self.published, self._lifetimes_s)
        self.admin = self._clients[0][1]
        if self._virtual_time:
            await self.admin.advance_clock(_BEGIN_MS)
            self.load.now_ms = _BEGIN_MS
        await self.crowd.gather(self._device_count, near, far)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.load.abandon()
        await self.crowd.leave()
        for context, _client in self._clients:
            await context.__aexit__(None, None, None)
        for proxy in self.proxies:
            await proxy.stop()
        await self.server.stop()

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass, for everybody who is awake."""
        now_ms = self.load.now_ms + round(seconds * 1000)
        self.load.now_ms = now_ms
        self.published.pass_time(now_ms)
        await self.admin.advance_clock(now_ms)
        await asyncio.gather(*(group.client.advance_clock(now_ms) for group in self.crowd.awake))

    async def wake(self, groups: list[Group]) -> None:
        """Tell devices what time it is, as their own clocks would, once they have a connection."""
        for group in groups:
            while True:
                try:
                    await group.client.advance_clock(self.load.now_ms)
                    break
                except UnavailableError:
                    await asyncio.sleep(0.05)

    async def rest(self) -> None:
        """End the load, and wait until every device is back and nothing is under way."""
        await self.load.rest()
        await settle(self.crowd)

    async def audit(self) -> None:
        """Come to rest and compare everything."""
        await self.rest()
        now_ms = self.load.now_ms
        self.modes |= {spec.region for one in self.crowd.members for spec in one.specs.values()}
        self.lists += audit_lists(self.crowd, self.published, now_ms, self.violations)
        await audit_searches(self.admin, self.crowd, self.published, now_ms, self.violations)
        audit_objects(self.server, self.published, now_ms, self.violations)
        audit_subscriptions(self.server, self.crowd, self.violations)

    async def _client(self, target: str):
        context = nearcast.connect(target)
        return context, await context.__aenter__()
