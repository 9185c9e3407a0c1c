"""Plans of publications: new objects, replacements, and the quotas."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from identity.principal import NOBODY, Principal
from identity.rules import require_room
from nearcast.errors import Reason, RefusedError
from safe_region.earth.frame import Frame
from server import command as c
from server.commands.plan import Plan, Publication, Touches
from server.commands.planned import Planned
from server.commands.validation import checked_objects
from server.core.coordinator import Coordinator
from server.core.evaluation_batch import EvaluationBatch
from server.limits import Limits
from server.model import LiveObject, NewObject
from server.store.mutations import DeleteObject, Mutation, PutObject, SetSourceOffset

_TO_COME = 0
"""Placeholder for an id before all objects of the request are allowed."""


class Objects(Protocol):
    """The objects that are alive by the time of a state."""

    def __getitem__(self, object_id: int, /) -> LiveObject: ...

    def __contains__(self, object_id: object, /) -> bool: ...

    def owners(self, ids: Sequence[int]) -> list[str]:
        """Return the owners of live objects."""
        ...

    def count_of(self, owner: str) -> int:
        """Return the number of live objects of an owner."""
        ...

    def count_of_tenant(self, tenant: str) -> int:
        """Return the number of live objects of a tenant."""
        ...

    def size_of(self, owner: str) -> int:
        """Return the size in bytes of the payloads of an owner's live objects."""
        ...

    def size_of_tenant(self, tenant: str) -> int:
        """Return the size in bytes of the payloads of a tenant's live objects."""
        ...


class Keys(Protocol):
    """The keys of the objects that are alive by the time of a state."""

    def of(self, owner: str) -> Mapping[str, int]:
        """Return the ids of an owner's objects by key."""
        ...

    def get(self, owner: str, key: str) -> int | None:
        """Return the id of an owner's object."""
        ...

    def find(self, tenant: str, key: str) -> list[int]:
        """Return the ids of all objects of a tenant with a key, oldest first."""
        ...


class ObjectState(Protocol):
    """The state that decides about objects: that of a coordinator, or by the time of a log."""

    @property
    def limits(self) -> Limits:
        """The limits of commands."""
        ...

    @property
    def frame(self) -> Frame:
        """The service area."""
        ...

    @property
    def objects(self) -> Objects:
        """The live objects."""
        ...

    @property
    def keys(self) -> Keys:
        """Their keys."""
        ...

    @property
    def now_ms(self) -> int:
        """The time that decides whether an object is alive, and from which it is."""
        ...

    def take_object_id(self) -> int:
        """Return the next id."""
        ...


class PublicationRules:
    """Decides about valid objects: ids, keys, quotas.

    Parameters
    ----------
    state
        Only read, except for the next object id.
    planned
        Objects that are planned and not in the state, by kind and owner.
    """

    def __init__(self, state: ObjectState, planned: Planned) -> None:
        self._state = state
        self._planned = planned

    def plan(self, checked: Sequence[NewObject], principal: Principal) -> Plan:
        """Plan the publication of valid objects, all or none.

        Raises
        ------
        RefusedError
            If it is refused; nothing has changed.
        """
        state = self._state
        now_ms, objects = state.now_ms, state.objects
        ids: list[int] = []
        created: list[LiveObject] = []
        known_ids: list[int] = []
        wanted: list[tuple[int, NewObject, int]] = []
        known = state.keys.of(principal.owner)
        for new in checked:
            old_id = known.get(new.key) if new.key else None
            if old_id is not None:
                known_ids.append(old_id)
                if objects[old_id].equals(new):
                    ids.append(old_id)
                    continue
            wanted.append((len(ids), new, old_id or 0))
            ids.append(_TO_COME)
        replaced = [old_id for _, _, old_id in wanted]
        self._require_room(principal, replaced.count(0))
        self._require_bytes(principal, [new for _, new, _ in wanted], replaced)
        for place, new, _ in wanted:
            item = self.accepted(new, now_ms, principal.owner)
            created.append(item)
            ids[place] = item.object_id
        mutations: list[Mutation] = [DeleteObject(old_id) for old_id in replaced if old_id]
        mutations += [PutObject(item) for item in created]
        keys = frozenset(new.key for new in checked if new.key)
        return Plan(
            lambda _: ids,
            tuple(mutations),
            Touches(principal.owner, keys, frozenset(known_ids)),
            Publication(created, replaced, ids),
        )

    def taken_in(
        self, objects: Sequence[NewObject], gone: Collection[str], now_ms: int
    ) -> tuple[list[LiveObject], list[int]]:
        """Return the new objects of rows of the source, and the ids of those that they retract.

        Objects with a known key, and those that the same rows retract, are ignored. No quota counts.
        """
        retracted, known = frozenset(gone), self._state.keys.of(NOBODY)
        new: dict[str, NewObject] = {}
        for one in objects:
            if one.key not in retracted and one.key not in known:
                new.setdefault(one.key, one)
        created = [self.accepted(one, now_ms) for one in new.values()]
        return created, [known[key] for key in sorted(retracted & known.keys())]

    def _require_room(self, principal: Principal, more: int) -> None:
        """Refuse objects beyond the quotas of their publisher or its tenant."""
        limits, objects = self._state.limits, self._state.objects
        owner, tenant = principal.owner, principal.tenant
        of_publisher, of_tenant = ("publisher", owner), ("tenant", tenant)
        if more > 0:
            if owner:
                count = objects.count_of(owner) + self._planned[of_publisher] + more
                require_room("objects", count, limits.publisher_objects_max, "publisher")
            count = objects.count_of_tenant(tenant) + self._planned[of_tenant] + more
            require_room("objects", count, limits.tenant_objects_max, "tenant")
        self._planned.add(of_publisher, more)
        self._planned.add(of_tenant, more)

    def _require_bytes(
        self, principal: Principal, wanted: Sequence[NewObject], replaced: Sequence[int]
    ) -> None:
        """Refuse payloads beyond the quotas of their publisher or its tenant."""
        limits, objects = self._state.limits, self._state.objects
        owner, tenant = principal.owner, principal.tenant
        more = sum(len(new.payload) for new in wanted)
        more -= sum(len(objects[old_id].payload) for old_id in replaced if old_id)
        of_publisher, of_tenant = ("publisher bytes", owner), ("tenant bytes", tenant)
        if more > 0:
            size = objects.size_of(owner) + self._planned[of_publisher] + more
            require_room("payload bytes", size, limits.publisher_bytes_max if owner else 0, "publisher")
            size = objects.size_of_tenant(tenant) + self._planned[of_tenant] + more
            require_room("payload bytes", size, limits.tenant_bytes_max, "tenant")
        self._planned.add(of_publisher, more)
        self._planned.add(of_tenant, more)

    def accepted(self, new: NewObject, now_ms: int, owner: str = "") -> LiveObject:
        """Return an object with the next id."""
        return LiveObject(
            self._state.take_object_id(),
            new.lon,
            new.lat,
            self._state.frame.project(new.lon, new.lat),
            new.keywords,
            now_ms,
            now_ms + new.ttl_ms,
            new.payload,
            new.key,
            new.area,
            owner,
        )


class PublicationPlanner:
    """Plans commands that publish objects.

    Parameters
    ----------
    coordinator
        The present state; only read, except for the next object id.
    planned
        Objects and subscriptions that the batch adds, by kind and owner.
    """

    def __init__(self, coordinator: Coordinator, planned: Planned) -> None:
        self._coordinator = coordinator
        self.rules = PublicationRules(coordinator, planned)

    def publish(self, command: c.Publish) -> Plan:
        """Plan a publish command.

        Raises
        ------
        RefusedError
            If it is refused; nothing has changed.
        """
        coordinator, principal = self._coordinator, command.principal
        self._require_sink()
        checked = checked_objects(command.objects, coordinator.limits, coordinator.frame, principal)
        return self.rules.plan(checked, principal)

    def take_in(self, command: c.TakeIn) -> Plan:
        """Plan the intake of objects from the source."""
        coordinator = self._coordinator
        self._require_sink()
        created, ids = self.rules.taken_in(command.objects, command.gone, coordinator.matching.now_ms)
        mutations: list[Mutation] = [DeleteObject(one) for one in ids]
        mutations += [PutObject(item) for item in created]
        mutations.append(SetSourceOffset(command.stream, command.offset))
        keys = frozenset((*command.gone, *(one.key for one in command.objects)))

        def retract(_: EvaluationBatch) -> bool:
            if ids:
                coordinator.retract(ids)
            return True

        return Plan(
            retract,
            tuple(mutations),
            Touches(NOBODY, keys, frozenset(ids)),
            Publication(created, [0] * len(created), []),
        )

    def _require_sink(self) -> None:
        require_sink_room(self._coordinator.counters.sink_waiting, self._coordinator.limits)


def require_sink_room(waiting_count: int, limits: Limits) -> None:
    """Refuse new objects while too many changes wait for the sink."""
    if waiting_count >= limits.sink_max:
        limit = f"below {limits.sink_max}; try again later"
        raise RefusedError(Reason.TOO_MANY, "sink", f"{waiting_count} changes wait", limit)
