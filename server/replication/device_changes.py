"""Mutations as changes of slots, and the subscriptions of slots as columns of a store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from cluster.registry import SEEN, Changes, LastSeen, StoredSubscription
from cluster.slots import slot_of
from server.replication.last_seen import LastSeenTimes
from server.session.session_table import Sessions
from server.store.mutations import (
    DeleteDevice,
    DeleteSubscription,
    Mutation,
    PutSubscription,
    SetLastSeen,
    SubscriptionColumns,
)

DeviceMutation = PutSubscription | DeleteSubscription | DeleteDevice | SetLastSeen
"""Mutations that are not for the store of a node."""


def changes_of(
    mutations: Iterable[Mutation], sessions: Sessions, last_seen: LastSeenTimes, log_ms: int
) -> dict[int, Changes]:
    """Return the changes by slot, with the records of when their devices were last seen.

    Parameters
    ----------
    mutations
        Not yet applied to the sessions.
    sessions
        The subscriptions of devices.
    last_seen
        When they were last seen.
    log_ms
        The time of the log.
    """
    found: dict[int, dict[tuple[str, int], StoredSubscription | LastSeen | None]] = {}
    for mutation in mutations:
        if not isinstance(mutation, DeviceMutation):
            continue
        device_id = mutation.device_id
        of_slot = found.setdefault(slot_of(device_id), {})
        match mutation:
            case PutSubscription(_, number, kind, spec, name):
                of_slot[device_id, number] = StoredSubscription(device_id, number, kind, spec, name)
            case DeleteSubscription(_, number):
                of_slot[device_id, number] = None
            case DeleteDevice():
                handles = sessions.handles_of(device_id) or {}
                of_slot.update({(device_id, number): None for number in handles})
            case SetLastSeen():
                of_slot[device_id, SEEN] = LastSeen(device_id, log_ms)
    changed = {slot: changes for slot, changes in found.items() if changes}
    devices = {device_id for changes in changed.values() for device_id, _ in changes}
    held = {device_id: sessions.handles_of(device_id) or () for device_id in devices}
    return last_seen.completed(changed, held, log_ms)


def columns_of(subscriptions: Sequence[StoredSubscription]) -> SubscriptionColumns:
    """Return subscriptions, by device, as columns."""
    return SubscriptionColumns(
        [one.device_id for one in subscriptions],
        np.array([one.subscription_id for one in subscriptions], dtype=np.int64),
        np.array([one.kind for one in subscriptions], dtype=np.int64),
        [json.loads(one.spec) for one in subscriptions],
        [one.name for one in subscriptions],
    )
