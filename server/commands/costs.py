"""What commands cost: estimated from their shape before they run, corrected by what they took.

Estimates decide how turns are taken and how large a slice of the event loop is. They are right within a
small factor, which follows what is measured. What a subscription has shown to cost beyond others is
remembered (`server/core/dear_subscriptions.py`).

Operations: O(subscriptions of the report) an estimate, O(1) a correction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from safe_region.earth import Polygon
from server import command as c
from server.core.coordinator import Coordinator
from server.core.dear_subscriptions import CHANGE_US
from server.model import Boolean, NewObject, Spec, TopK

_EVALUATION_US = 60.0
"""An evaluation of a top-k subscription, its delta made, routed and encoded."""
_SUBSCRIBE_US = 150.0
"""A subscription begun: validated, planned, evaluated; its row is written elsewhere."""
_OBJECT_US = 40.0
"""An object published: validated, planned, matched, applied."""
_KIB_US = 5.0
"""A KiB of payload: read, written to the log and to the file."""
_CLAUSE_US = 2.0
_KEYWORD_US = 1.0
_AREA_US = 50.0
_CORNER_US = 1.0
_SMALL_US = 10.0
"""Acks, pings and the like."""
_RISE, _FALL = 0.3, 0.1
"""How fast a factor follows what takes more, or less, than was estimated."""
_JUMP_MAX = 2.0
"""How much more is believed at once: one pause of the machine is no change of costs."""
_FACTOR_MIN, _FACTOR_MAX = 0.25, 16.0


class Factor:
    """How much more something takes than was estimated, smoothed."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 1.0

    def note(self, estimated_us: float, took_us: float) -> None:
        """Note what was estimated, with this factor in it, and what it took. O(1)."""
        if estimated_us <= 0.0:
            return
        found = self.value * took_us / estimated_us
        found = min(max(found, _FACTOR_MIN), _FACTOR_MAX, _JUMP_MAX * self.value)
        self.value += (_RISE if found > self.value else _FALL) * (found - self.value)


class Costs:
    """Estimates commands, in microseconds of the event loop.

    Parameters
    ----------
    coordinator
        What is there.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._sessions = coordinator.sessions
        self._dear = coordinator.dear
        self.evaluation = Factor()
        self.publication = Factor()
        self.subscription = Factor()

    @property
    def object_us(self) -> float:
        """Return what an object takes that is published."""
        return self.publication.value * _OBJECT_US

    def factor_of(self, commands: Sequence[c.Command]) -> Factor | None:
        """Return what follows how long a batch of durable commands takes, if all are of one kind."""
        if all(isinstance(one, c.Publish | c.TakeIn) for one in commands):
            return self.publication
        return self.subscription if all(isinstance(one, c.Subscribe) for one in commands) else None

    def of(self, command: c.Command) -> float:
        """Return what a command may cost."""
        if isinstance(command, c.Report):  # nearly always
            return self._report(command)
        found = self._published(command)
        return self._device_cost_us(command) if found is None else found

    def _published(self, command: c.Command) -> float | None:
        """Return what a command about objects may cost; None if it is no such command."""
        match command:
            case c.Publish() | c.TakeIn():
                objects = command.objects
                count, payload_bytes = max(1, len(objects)), sum(len(one.payload) for one in objects)
                return self.object_us * count + _KIB_US * payload_bytes / 1024.0 + _areas_us(objects)
            case c.Retract():
                return _SMALL_US * max(1, len(command.ids) + len(command.keys))
            case _:
                return None

    def _device_cost_us(self, command: c.Command) -> float:
        """Return what a command of a device, or a question, may cost."""
        match command:
            case c.Hello():
                session = self._sessions.get(command.device_id)
                handles = () if session is None else session.handles.values()
                return _EVALUATION_US + self._evaluations(handles)
            case c.Search():
                return self.evaluation.value * (_EVALUATION_US + _shape_us(command.spec))
            case c.Subscribe():
                return self.subscription.value * (_SUBSCRIBE_US + _shape_us(command.spec))
            case c.Inspect() | c.ForgetDevice():
                return 10.0 * _EVALUATION_US
            case _:
                return _SMALL_US

    def _report(self, report: c.Report) -> float:
        if not self._dear or report.session is None:
            return self.evaluation.value * _EVALUATION_US * max(1, len(report.subscription_ids))
        handles = report.session.handles
        known = [handles[one] for one in report.subscription_ids if one in handles]
        return _SMALL_US + self._evaluations(known)

    def _evaluations(self, handles: Iterable[int]) -> float:
        dear = self._dear
        return self.evaluation.value * sum(_EVALUATION_US + dear.get(one) for one in handles)


def _areas_us(objects: Iterable[NewObject]) -> float:
    """Return what the areas of objects add to publishing them."""
    return sum(
        _AREA_US + (_CORNER_US * len(one.area.outer) if isinstance(one.area, Polygon) else 0.0)
        for one in objects
        if one.area is not None
    )


def _shape_us(spec: Spec) -> float:
    """Return what the shape of a spec adds to an evaluation."""
    if isinstance(spec, TopK):
        return CHANGE_US * spec.k
    if not isinstance(spec, Boolean):
        return 0.0
    words = sum(len(one.required) + len(one.excluded) for one in spec.clauses)
    corners = len(spec.range.outer) if isinstance(spec.range, Polygon) else 0
    return _CLAUSE_US * len(spec.clauses) + _KEYWORD_US * words + _CORNER_US * corners
