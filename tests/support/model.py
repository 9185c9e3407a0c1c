"""What publishers asked for, in the order in which the server took it, and what must become of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nearcast.errors import Reason, RefusedError
from safe_region import oracle
from safe_region.earth.frame import Frame
from safe_region.earth.shapes import Bounds, ObjectArea
from safe_region.oracle import plane as oracle_plane
from server import command as c
from server.model import LiveObject, NewObject


@dataclass(eq=False)
class Submitted:
    """A command and what becomes its reply, once the server has it in its queue."""

    command: c.Command
    answer: asyncio.Future[Any] | None = None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None and self.answer.done()

    @property
    def reply(self) -> asyncio.Future[Any]:
        assert self.answer is not None
        return self.answer


@dataclass
class State:
    """What is alive at a moment. Objects are known by their payloads, which are all different."""

    now_ms: int = 0
    objects: dict[bytes, tuple[NewObject, int]] = field(default_factory=dict)
    """Each with the time at which it was created."""
    latest_id: int = 0
    """Of all that were published, which are numbered from 1 on."""

    def copy(self) -> State:
        return State(self.now_ms, dict(self.objects), self.latest_id)

    def apply(self, command: c.Command, payload_of: Mapping[int, bytes], frame: Frame) -> Reason | None:
        """Carry a command out by the definitions; return why it is to be refused, if it is."""
        match command:
            case c.Publish():
                return self._publish(command, frame)
            case c.Retract():
                payloads = {payload_of.get(object_id, b"") for object_id in command.ids}
                keyed = [self._of_key(key) for key in command.keys]
                if not payloads <= self.objects.keys() or None in keyed:
                    return Reason.UNKNOWN_OBJECT
                for payload in payloads | {new.payload for new in keyed if new is not None}:
                    del self.objects[payload]
            case c.AdvanceClock():
                self.now_ms = command.time_ms
                self.objects = {
                    payload: (new, created_ms)
                    for payload, (new, created_ms) in self.objects.items()
                    if self.now_ms < created_ms + new.ttl_ms
                }
        return None

    def _publish(self, command: c.Publish, frame: Frame) -> Reason | None:
        if not all(frame.covers(new.lon, new.lat) for new in command.objects):
            return Reason.OUT_OF_AREA
        for new in command.objects:
            old = self._of_key(new.key)
            if old == new:
                continue
            if old is not None:
                del self.objects[old.payload]
            self.objects[new.payload] = (new, self.now_ms)
            self.latest_id += 1
        return None

    def _of_key(self, key: str) -> NewObject | None:
        return next((new for new, _ in self.objects.values() if key and new.key == key), None)


_WITHOUT_OBJECTS = (c.Search, c.Forget, c.ForgetDevice)
"""Commands that others may overtake, as objects are the same with and without them."""


class Model:
    """All objects, from the definitions.

    Parameters
    ----------
    frame
        The service area.
    """

    def __init__(self, frame: Frame) -> None:
        self.state = State()
        self.submitted: deque[Submitted] = deque()
        """What has not been settled, in the order in which the server took it."""
        self.id_of: dict[bytes, int] = {}
        """By payload."""
        self.may_fail = False
        """Whether commits have failed, so that commands may have been refused for it."""
        self._payload_of: dict[int, bytes] = {}
        self._latest_id = 0
        self._frame = frame

    @property
    def now_ms(self) -> int:
        return self.state.now_ms

    def ids(self) -> set[int]:
        """Return what is alive."""
        return {self.id_of[payload] for payload in self.state.objects}

    def keyed(self) -> list[NewObject]:
        """Return what is alive and has a key."""
        return [new for new, _ in self.state.objects.values() if new.key]

    def oracle_objects(self) -> list[oracle.OracleObject]:
        return self._oracle_objects(self.state, self.id_of)

    def _oracle_objects(self, state: State, id_of: dict[bytes, int]) -> list[oracle.OracleObject]:
        return [
            oracle.OracleObject(
                id_of[payload],
                *self._frame.project(new.lon, new.lat),
                frozenset(new.keywords),
                created_ms,
                created_ms + new.ttl_ms,
                self._plane(new.area),
            )
            for payload, (new, created_ms) in state.objects.items()
        ]

    def _plane(self, area: ObjectArea | None) -> oracle_plane.Area | None:
        if isinstance(area, Bounds):
            low = self._frame.project(area.lon_min, area.lat_min)
            return oracle.OracleRectangle(*low, *self._frame.project(area.lon_max, area.lat_max))
        if area is None:
            return None
        return oracle.OraclePolygon((tuple(self._frame.project(*one) for one in area.outer),))

    def settle(self) -> list[Submitted]:
        """Take over what has been answered and return it. Every answer must be the right one."""
        settled = []
        states = [(self.state.copy(), dict(self.id_of))]
        searches = []
        for one in list(self.submitted):
            if not one.is_answered:
                if isinstance(one.command, _WITHOUT_OBJECTS):
                    continue
                break
            self.submitted.remove(one)
            if isinstance(one.command, c.Search):
                searches.append(one)
                continue
            settled.append(one)
            refusal = one.reply.exception()
            if isinstance(refusal, RefusedError) and refusal.reason is Reason.INTERNAL:
                assert self.may_fail, "nothing was wrong with the disk"
                continue
            if isinstance(one.command, c.SetIdf) and refusal is not None:
                assert refusal.reason is Reason.TOO_MANY, "one at a time"
                continue
            before = self.state.copy()
            expected = self.state.apply(one.command, self._payload_of, self._frame)
            assert (refusal and refusal.reason) == expected, one
            if expected is None and isinstance(one.command, c.Publish):
                self._take_ids(one.command, one.reply.result(), before)
            states.append((self.state.copy(), dict(self.id_of)))
        for one in searches:
            self._compare(one.command, *one.reply.result(), states)
        return settled

    def _take_ids(self, command: c.Publish, ids: list[int], before: State) -> None:
        """Note the ids of new objects; what is published again keeps its own."""
        for new, object_id in zip(command.objects, ids, strict=True):
            if new.payload in before.objects:
                assert object_id == self.id_of[new.payload]
            else:
                self._take_id(new.payload, object_id)

    def _take_id(self, payload: bytes, object_id: int) -> None:
        assert object_id > self._latest_id, "no id is given twice"
        self._latest_id = object_id
        self._payload_of.pop(self.id_of.get(payload, 0), None)  # what had expired may be published again
        self.id_of[payload] = object_id
        self._payload_of[object_id] = payload

    def _compare(
        self,
        command: c.Search,
        ranked: Iterable[Any],
        now_ms: int,
        states: Iterable[tuple[State, dict[bytes, int]]],
    ) -> None:
        """A search waits for no commit of others: it is answered as of one of the states there were."""
        found = [one.item.object_id for one in ranked]
        wanted, last = oracle_subscription(command.spec), command.spec.window
        point = self._frame.project(command.lon, command.lat)
        were_best = []
        for state, id_of in states:
            objects = self._oracle_objects(state, id_of)
            window = oracle.OracleWindow(last.duration_ms or None, last.count or None, state.latest_id)
            wanted = wanted._replace(window=window)
            expected = oracle.top_k(wanted, *point, self._frame.maxdist_m, objects, state.now_ms)
            were_best.append((state.now_ms, [one.object_id for one in expected]))
        assert (now_ms, found) in were_best, command

    def recover(self, found: Mapping[int, LiveObject], now_ms: int, latest_id: int) -> int:
        """Go on from what a killed server has left: all that was answered, and some of what was not.

        Commands become durable in order, so this must be what some of them, from the first on, have left.

        Returns
        -------
        int
            How many commands had become durable and were never answered.
        """
        self.settle()
        contents = {item.payload: item.created_ms for item in found.values()}
        count = 0
        while (now_ms, latest_id, contents) != (
            self.now_ms,
            self.state.latest_id,  # what was published and retracted by its key has left nothing else
            {payload: created_ms for payload, (_, created_ms) in self.state.objects.items()},
        ):
            assert self.submitted, "the store has a state that never existed, or lost an acknowledged one"
            command, before = self.submitted.popleft().command, set(self.state.objects)
            refusal = self.state.apply(command, self._payload_of, self._frame)
            if isinstance(command, c.Publish) and refusal is None:
                for new in command.objects:
                    if new.payload not in before:  # published again, it is not what its old id names
                        self._payload_of.pop(self.id_of.get(new.payload, 0), None)
            count += 1
        self.submitted.clear()
        for object_id, item in sorted(found.items()):
            if self.id_of.get(item.payload) != object_id:
                self._take_id(item.payload, object_id)
        return count


def oracle_subscription(spec: Any) -> oracle.OracleSubscription:
    """Return what a subscription of the server or of the SDK asks for, as the oracle sees it."""
    return oracle.OracleSubscription(
        frozenset(spec.keywords),
        spec.k,
        spec.alpha,
        spec.similarity.name.lower(),
        distance_scale_m=spec.distance_scale_m,
    )
