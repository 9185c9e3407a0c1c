"""The first entry of a log: what all nodes have to agree on. The first node makes it."""

from __future__ import annotations

import contextlib
import secrets

from cluster.entries import RULES, Entry, Founding
from cluster.log import Log, LogConflictError, LogError
from cluster.registry import SharedRecords
from safe_region.earth.frame import Frame
from server.limits import Limits
from server.replication.applier import require_rules

_QUOTAS = ("publisher_objects_max", "publisher_bytes_max", "tenant_objects_max", "tenant_bytes_max")
_ID_BYTES = 16


def founding_of(frame: Frame, limits: Limits, *, is_virtual: bool) -> Founding:
    """Return what the settings of a node need from the others."""
    projection = (
        frame.lon0_deg,
        frame.lat0_deg,
        frame.x_m_per_deg,
        frame.y_m_per_deg,
        frame.maxdist_m,
    )
    quotas = {name: int(getattr(limits, name)) for name in _QUOTAS}
    return Founding(RULES, tuple(frame.area), projection, is_virtual, quotas)


async def joined(log: Log, records: SharedRecords, founding: Founding) -> str:
    """Found the log if it is empty; verify that a node agrees with it; return its id.

    The first entry is also kept beside the log, which deletes it some day.

    Raises
    ------
    LogError
        If the node must not apply the log, or it does not respond.
    """
    if not await log.end():
        with contextlib.suppress(LogConflictError):  # another node was faster
            await log.append([Entry(0, founding, secrets.token_bytes(_ID_BYTES))], is_first=True)
    if await log.first() == 1:
        entry = await _first_entry(log)
        await records.set_founding(entry)
    else:
        kept = await records.founding()
        if kept is None:
            raise LogError("the first entry of the log is lost: a restore has not ended, or was damaged")
        entry = kept
    assert isinstance(entry.change, Founding)  # noqa: S101 - for the type checker
    require_rules(entry.change.rules)
    _require_same(entry.change, founding)
    return entry.request_id.hex()


async def _first_entry(log: Log) -> Entry:
    async for message in log.read(0):
        entry = message.entries[0]
        if not isinstance(entry.change, Founding):
            break
        return entry
    raise LogError("the log has another first entry than that of a cluster: give it a stream of its own")


def _require_same(found: Founding, expected: Founding) -> None:
    for name, there, here in (
        ("area", found.area, expected.area),
        ("projection", found.projection, expected.projection),
        ("virtual_time", found.virtual_time, expected.virtual_time),
        *((name, found.quotas.get(name), value) for name, value in expected.quotas.items()),
    ):
        if there != here:
            raise LogError(f"{name} is {here}, must be {there} as in the log, for all nodes of a cluster")
