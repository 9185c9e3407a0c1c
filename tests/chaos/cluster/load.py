"""The load on a cluster: an outcome may be unknown, and a request may be carried out late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from nearcast import GeoObject, Reason, RefusedError, UnavailableError
from safe_region import oracle
from tests.chaos.cluster.ledger import Ledger
from tests.chaos.load import Load
from tests.chaos.published_objects import PublishedObjects

_AGAIN_S = 0.1
_SHORT_SHARE = 0.3
_SHORT_S = (0.2, 1.5)
LONG_S = 20 * 3600.0
"""Some objects expire within moments, the others after all jumps of clocks."""
_TEMPORARY = (Reason.RECOVERING, Reason.DRAINING, Reason.ANOTHER_SERVER, Reason.LAGGING)
_UNREAD = ("log", "request")
"""Fields of refusals: the outcome is not known; or a node that was paused has not read the request."""
_Answer = TypeVar("_Answer")


@dataclass
class Acknowledged(PublishedObjects):
    """What publishers were acknowledged; what is alive is in the log."""

    ledger: Ledger = field(kw_only=True)
    acknowledged: dict[int, GeoObject] = field(default_factory=dict)
    """Since the last audit."""
    now_ms: int = 0

    def posted(self, what: GeoObject, object_id: int, now_ms: int) -> None:
        super().posted(what, object_id, now_ms)
        self.acknowledged[object_id] = what

    def candidates(self) -> list[oracle.OracleObject]:
        """Return what is alive by the log."""
        return self.ledger.plain(self.ledger.alive(self.now_ms))

    def begin(self, now_ms: int) -> None:
        """Continue with what is alive by the log."""
        alive = {one.object_id for one in self.ledger.alive(now_ms)}
        self.objects = {key: one for key, one in self.objects.items() if key in alive}
        self.acknowledged.clear()


class ClusterLoad(Load):
    """The load, which repeats what has no known outcome, too."""

    unsure = 0
    """Requests whose outcome was not known at first."""

    def _object(self, key: str) -> GeoObject:
        is_short = self._chance.random() < _SHORT_SHARE
        ttl_s = round(self._chance.uniform(*_SHORT_S), 3) if is_short else LONG_S
        return replace(super()._object(key), ttl_s=ttl_s)

    async def _until_answered(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer | None:
        while True:
            try:
                return await ask()
            except UnavailableError:
                self.unsure += 1
            except RefusedError as error:
                if error.field not in _UNREAD and error.reason not in _TEMPORARY:
                    if error.reason is not Reason.INTERNAL:
                        raise
                    self.refused += 1
                    await asyncio.sleep(_AGAIN_S)
                    return None
                self.unsure += 1
            await asyncio.sleep(_AGAIN_S)

    async def _change(self, change, member) -> None:
        try:
            await change
        except RefusedError as error:
            if error.reason not in (*_TEMPORARY, Reason.INTERNAL):
                raise
            self.refused += 1
        finally:
            member.is_busy = False
