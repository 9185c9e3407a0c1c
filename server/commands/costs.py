"""Costs of commands: estimated from their shape before they run, corrected by measured times.

The estimates decide the order of turns and the size of a slice of the event loop. They are right within a
small factor, which follows the measurements. The extra costs that a subscription has shown are remembered
(`server/core/dear_subscriptions.py`).

Operations: O(subscriptions of the report) per estimate, O(1) per correction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from safe_region.earth.shapes import Polygon
from server import command as c
from server.core.coordinator import Coordinator
from server.core.dear_subscriptions import CHANGE_US
from server.model import Boolean, NewObject, Spec, TopK

_EVALUATION_US = 60.0
"""An evaluation of a top-k subscription, with making, routing and encoding its delta."""
_SUBSCRIBE_US = 150.0
"""A new subscription: validated, planned, evaluated; without the write of its row."""
_OBJECT_US = 40.0
"""A published object: validated, planned, matched, applied."""
_KIB_US = 5.0
"""A KiB of payload: read, written to the log and to the file."""
_CLAUSE_US = 2.0
_KEYWORD_US = 1.0
_AREA_US = 50.0
_CORNER_US = 1.0
_EXPIRED_US = 5.0
"""An object that expires: removed from all structures and results."""
_SMALL_US = 10.0
"""Acks, pings and the like."""
_RISE, _FALL = 0.3, 0.1
"""How fast a factor follows times above, or below, the estimate."""
_JUMP_MAX = 2.0
"""Maximum growth of a factor in one step: a single pause of the machine is no change of costs."""
_FACTOR_MIN, _FACTOR_MAX = 0.25, 16.0


class Factor:
    """The smoothed ratio of measured to estimated time."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 1.0

    def note(self, estimated_us: float, took_us: float) -> None:
        """Record an estimate, which includes this factor, and the measured time. O(1)."""
        if estimated_us <= 0.0:
            return
        found = self.value * took_us / estimated_us
        found = min(max(found, _FACTOR_MIN), _FACTOR_MAX, _JUMP_MAX * self.value)
        self.value += (_RISE if found > self.value else _FALL) * (found - self.value)


class Costs:
    """Estimates the costs of commands, in microseconds of the event loop.

    Parameters
    ----------
    coordinator
        The present state.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._sessions = coordinator.sessions
        self._dear = coordinator.dear
        self.evaluation = Factor()
        self.publication = Factor()
        self.subscription = Factor()
        self.expiry = Factor()

    @property
    def object_us(self) -> float:
        """The estimated cost of publishing an object."""
        return self.publication.value * _OBJECT_US

    @property
    def expired_us(self) -> float:
        """The estimated cost of removing an object that has expired."""
        return self.expiry.value * _EXPIRED_US

    def evaluation_us(self, handle: int) -> float:
        """Return the estimated cost of evaluating a subscription."""
        return self.evaluation.value * (_EVALUATION_US + self._dear.get(handle))

    def factor_of(self, commands: Sequence[c.Command]) -> Factor | None:
        """Return the factor of a batch of durable commands, if all are of one kind; else None."""
        if all(isinstance(one, c.Publish | c.TakeIn) for one in commands):
            return self.publication
        return self.subscription if all(isinstance(one, c.Subscribe) for one in commands) else None

    def of(self, command: c.Command) -> float:
        """Return the estimated cost of a command."""
        if isinstance(command, c.Report):  # nearly always
            return self._report(command)
        found = self._published(command)
        return self._device_cost_us(command) if found is None else found

    def _published(self, command: c.Command) -> float | None:
        """Return the estimated cost of a command about objects; None for another command."""
        match command:
            case c.Publish() | c.TakeIn():
                objects = command.objects
                count, payload_bytes = max(1, len(objects)), sum(len(one.payload) for one in objects)
                return self.object_us * count + _KIB_US * payload_bytes / 1024.0 + _areas_us(objects)
            case c.Retract():
                return _SMALL_US * max(1, len(command.ids) + len(command.keys))
            case c.InTurn():
                return _SMALL_US + self.object_us * command.row_count
            case _:
                return None

    def _device_cost_us(self, command: c.Command) -> float:
        """Return the estimated cost of a command of a device, a search or an inspection."""
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
        return sum(map(self.evaluation_us, handles))


def _areas_us(objects: Iterable[NewObject]) -> float:
    """Return the cost that the areas of objects add to publishing them."""
    return sum(
        _AREA_US + (_CORNER_US * len(one.area.outer) if isinstance(one.area, Polygon) else 0.0)
        for one in objects
        if one.area is not None
    )


def _shape_us(spec: Spec) -> float:
    """Return the cost that the shape of a spec adds to an evaluation."""
    if isinstance(spec, TopK):
        return CHANGE_US * spec.k
    if not isinstance(spec, Boolean):
        return 0.0
    words = sum(len(one.required) + len(one.excluded) for one in spec.clauses)
    corners = len(spec.range.outer) if isinstance(spec.range, Polygon) else 0
    return _CLAUSE_US * len(spec.clauses) + _KEYWORD_US * words + _CORNER_US * corners
