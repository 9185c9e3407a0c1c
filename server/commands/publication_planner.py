"""Plans of publications: new objects, replacements, and the quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from identity.principal import NOBODY, Principal
from identity.rules import require_room
from nearcast.errors import Reason, RefusedError
from server import command as c
from server.commands.plan import Plan, Publication, Touches
from server.commands.validation import checked_objects
from server.core.coordinator import Coordinator
from server.model import LiveObject, NewObject
from server.store.mutations import DeleteObject, Mutation, PutObject, SetSourceOffset

_TO_COME = 0
"""Placeholder for an id before all objects of the request are allowed."""


class PublicationPlanner:
    """Plans commands that publish objects.

    Parameters
    ----------
    coordinator
        The present state; only read, except for the next object id.
    planned
        Objects and subscriptions that the batch adds, by kind and owner.
    """

    def __init__(self, coordinator: Coordinator, planned: Counter[tuple[str, str]]) -> None:
        self._coordinator = coordinator
        self._planned = planned

    def publish(self, command: c.Publish) -> Plan:
        """Plan a publish command.

        Raises
        ------
        RefusedError
            If it is refused; nothing has changed.
        """
        coordinator = self._coordinator
        self._require_sink()
        now_ms = coordinator.matching.now_ms
        ids: list[int] = []
        created: list[LiveObject] = []
        known_ids: list[int] = []
        wanted: list[tuple[int, NewObject, int]] = []
        principal = command.principal
        checked = checked_objects(command.objects, coordinator.limits, coordinator.frame, principal)
        known = coordinator.keys.of(principal.owner)
        for new in checked:
            old_id = known.get(new.key) if new.key else None
            if old_id is not None:
                known_ids.append(old_id)
                if coordinator.matching.objects[old_id].equals(new):
                    ids.append(old_id)
                    continue
            wanted.append((len(ids), new, old_id or 0))
            ids.append(_TO_COME)
        replaced = [old_id for _, _, old_id in wanted]
        self._require_room(principal, replaced.count(0))
        self._require_bytes(principal, [new for _, new, _ in wanted], replaced)
        for place, new, _ in wanted:
            item = self._accepted(new, now_ms, principal.owner)
            created.append(item)
            ids[place] = item.object_id
        mutations: list[Mutation] = [DeleteObject(old_id) for old_id in replaced if old_id]
        mutations += [PutObject(item) for item in created]
        keys = frozenset(new.key for new in checked if new.key)
        return Plan(
            lambda _: ids,
            tuple(mutations),
            Touches(keys, frozenset(known_ids)),
            Publication(created, replaced, ids),
        )

    def take_in(self, command: c.TakeIn) -> Plan:
        """Plan the intake of objects from the source."""
        coordinator = self._coordinator
        self._require_sink()
        now_ms = coordinator.matching.now_ms
        gone = frozenset(command.gone)
        new = {one.key: one for one in reversed(command.objects) if one.key not in gone}
        known = coordinator.keys.of(NOBODY)
        created = [self._accepted(one, now_ms) for one in reversed(new.values()) if one.key not in known]
        ids = [known[key] for key in sorted(gone & known.keys())]
        mutations: list[Mutation] = [DeleteObject(one) for one in ids]
        mutations += [PutObject(item) for item in created]
        mutations.append(SetSourceOffset(command.stream, command.offset))
        touches = Touches(gone | new.keys(), frozenset(ids))
        return Plan(
            lambda _: coordinator.retract(ids) if ids else None,
            tuple(mutations),
            touches,
            Publication(created, [0] * len(created), []),
        )

    def _require_sink(self) -> None:
        """Refuse changes for the sink while too many wait there."""
        waiting, limit = self._coordinator.counters.sink_waiting, self._coordinator.limits.sink_max
        if waiting >= limit:
            value = f"{waiting} changes wait"
            raise RefusedError(Reason.TOO_MANY, "sink", value, f"below {limit}; try again later")

    def _require_room(self, principal: Principal, more: int) -> None:
        """Refuse objects beyond the quotas of their publisher or its tenant."""
        limits, objects = self._coordinator.limits, self._coordinator.matching.objects
        owner, tenant = principal.owner, principal.tenant
        of_publisher, of_tenant = ("publisher", owner), ("tenant", tenant)
        if more > 0:
            if owner:
                count = objects.count_of(owner) + self._planned[of_publisher] + more
                require_room("objects", count, limits.publisher_objects_max, "publisher")
            count = objects.count_of_tenant(tenant) + self._planned[of_tenant] + more
            require_room("objects", count, limits.tenant_objects_max, "tenant")
        self._planned[of_publisher] += more
        self._planned[of_tenant] += more

    def _require_bytes(
        self, principal: Principal, wanted: Sequence[NewObject], replaced: Sequence[int]
    ) -> None:
        """Refuse payloads beyond the quotas of their publisher or its tenant."""
        limits, objects = self._coordinator.limits, self._coordinator.matching.objects
        owner, tenant = principal.owner, principal.tenant
        more = sum(len(new.payload) for new in wanted)
        more -= sum(len(objects[old_id].payload) for old_id in replaced if old_id)
        of_publisher, of_tenant = ("publisher bytes", owner), ("tenant bytes", tenant)
        if more > 0:
            size = objects.size_of(owner) + self._planned[of_publisher] + more
            require_room("payload bytes", size, limits.publisher_bytes_max if owner else 0, "publisher")
            size = objects.size_of_tenant(tenant) + self._planned[of_tenant] + more
            require_room("payload bytes", size, limits.tenant_bytes_max, "tenant")
        self._planned[of_publisher] += more
        self._planned[of_tenant] += more

    def _accepted(self, new: NewObject, now_ms: int, owner: str = "") -> LiveObject:
        return LiveObject(
            self._coordinator.take_object_id(),
            new.lon,
            new.lat,
            self._coordinator.frame.project(new.lon, new.lat),
            new.keywords,
            now_ms,
            now_ms + new.ttl_ms,
            new.payload,
            new.key,
            new.area,
            owner,
        )
