"""Backup and restore of a whole cluster: the objects of a node's store, and the subscriptions in the log.

A backup is one file, a store like any other, so that `nearcast store check` verifies it. It has every
object and subscription that was acknowledged before it started. A restored cluster is a new one: its log
has another id, and continues after the offset of the backup. So a store of the former cluster cannot be
mistaken for one of the new.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, starmap
from pathlib import Path
from typing import NamedTuple, TypeVar

from cluster.jetstream import JetStreamLog
from cluster.key_shared_records import KeySharedRecords
from cluster.log import LogError
from cluster.records import encoded_founding, founding_from
from cluster.registry import LastSeen, StoredSubscription
from safe_region.earth.frame import Frame
from server.errors import StoreError
from server.store import SqliteStore, files
from server.store.adopting import require_intact, snapshot_facts
from server.store.checking import Progress
from server.store.device_rows import devices_in, founding_in, last_seen_in, put_devices
from server.store.facts import stored_area
from server.store.mutations import PutSubscription
from server.store.scratch import scratch_file

_ID_BYTES = 16
_WRITES_MAX = 200
"""Records of devices that are written to the log at a time."""

_Record = TypeVar("_Record")


class BackupFacts(NamedTuple):
    """The content of a backup."""

    offset: int
    """In the log, of the objects."""
    subscription_count: int


async def backup(
    log: JetStreamLog, fetch: Callable[[Path], Awaitable[None]], target: Path, progress: Progress
) -> BackupFacts:
    """Write a backup of a cluster into a new file.

    Parameters
    ----------
    log
        The log, connected.
    fetch
        Copies the store of a node into a new file.
    target
        The file.
    progress
        Called with the progress.

    Raises
    ------
    LogError
        If the log does not respond, or is not that of the node.
    StoreError
        If the backup is not intact, or cannot be written.
    CopyError
        If the node does not send its store.
    """
    _require_free(target)
    records = KeySharedRecords(log.keys)
    with scratch_file(str(target)) as part:
        await fetch(part)
        found = await _with_devices(part, records, progress)
        await asyncio.to_thread(require_intact, part, progress)
        await asyncio.to_thread(_name, part, target)
    return found


async def _with_devices(part: Path, records: KeySharedRecords, progress: Progress) -> BackupFacts:
    """Add the subscriptions of the cluster, and when their devices were last seen, to a node's store."""
    founding, facts = await records.founding(), snapshot_facts(part)
    if founding is None or founding.request_id.hex() != facts.log_id:
        raise LogError("the log is not that of the node: --log and --server must be of one cluster")
    progress("subscriptions", 0, 0)
    devices = await records.devices()
    found = [_put(one) for one in devices.subscriptions]
    seen_ms = {one.device_id: one.time_ms for one in devices.seen}
    await asyncio.to_thread(put_devices, part, found, seen_ms, encoded_founding(founding))
    progress("subscriptions", len(found), len(found))
    return BackupFacts(facts.offset, len(found))


def _name(part: Path, target: Path) -> None:
    """Give a file its name, unless the name is taken."""
    try:
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.link(part, target, follow_symlinks=False)
        files.sync_folder(str(target))
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}") from error


async def restore(log: JetStreamLog, source: Path, target: Path, progress: Progress) -> BackupFacts:
    """Restore a cluster: its log on servers that do not have it, and the store of its first node.

    The log can be used when everything is there: a node that starts earlier ends with an error.

    Parameters
    ----------
    log
        The log, connected, without its streams.
    source
        The backup.
    target
        The store, a new file.
    progress
        Called with the progress.

    Raises
    ------
    LogError
        If the log exists, does not promise durability, or does not respond.
    StoreError
        If the backup is none of a cluster or not intact, or the store cannot be written.
    """
    await asyncio.to_thread(require_intact, source, progress)
    value, facts = founding_in(source), snapshot_facts(source)
    if value is None:
        raise StoreError(f"{source} is the store of a server, not the backup of a cluster")
    entry = replace(founding_from(value), request_id=secrets.token_bytes(_ID_BYTES))
    _require_free(target)
    await log.create(facts.offset)
    await asyncio.to_thread(_new_store, source, target, entry.request_id.hex())
    records = KeySharedRecords(log.keys)
    count = await _restored_devices(records, source, progress)
    await records.set_founding(entry)
    return BackupFacts(facts.offset, count)


def _require_free(target: Path) -> None:
    for suffix in ("", *files.BESIDE):
        path = target.with_name(target.name + suffix)
        if path.exists():
            raise StoreError(f"{path} already exists: move it away, or choose another name")
    if not target.parent.is_dir():
        raise StoreError(f"{target} cannot be written: the folder {target.parent} does not exist")


def _new_store(source: Path, target: Path, log_id: str) -> None:
    """Make the store of a node from a backup."""
    try:
        store = SqliteStore(target, Frame.of(stored_area(source)))
    except sqlite3.Error as error:
        raise StoreError(f"{target} cannot be written: {error}") from error
    try:
        store.adopt(source, log_id)
    except BaseException:
        store.discard()
        raise
    store.close()


async def _restored_devices(records: KeySharedRecords, source: Path, progress: Progress) -> int:
    """Write the records of devices in a backup to the log; return the number of subscriptions."""
    count = 0
    progress("subscriptions", 0, 0)
    for some in _slices(map(_stored, devices_in(source))):
        await asyncio.gather(*map(records.add, some))
        count += len(some)
        progress("subscriptions", count, 0)
    for seen in _slices(starmap(LastSeen, last_seen_in(source))):
        await asyncio.gather(*map(records.add, seen))
    return count


def _slices(found: Iterator[_Record]) -> Iterator[Sequence[_Record]]:
    while some := list(islice(found, _WRITES_MAX)):
        yield some


def _put(one: StoredSubscription) -> PutSubscription:
    return PutSubscription(one.device_id, one.subscription_id, one.kind, one.spec, one.name)


def _stored(one: PutSubscription) -> StoredSubscription:
    return StoredSubscription(one.device_id, one.subscription_id, one.kind, one.spec, one.name)
