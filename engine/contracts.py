"""What every matcher does: one kind of subscription over the common table of objects.

Arrays in, arrays out. A matcher trusts its caller: handles are new or known as each method says, objects
exist, time does not go backwards. Within an instant the engine applies: expire, remove, publish,
evaluate.

Handles are the caller's numbers of subscriptions. The kind lies in their upper bits, so whoever has a
handle knows which matcher it belongs to.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from engine.change_kernels import group
from index.batches import Floats, Ints, KeywordLists, ObjectBatch, Ranking
from index.tables.order_kernels import order_of
from index.tables.slots import Slots

Rows = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

TOP_K = 0
"""The k best, wherever the device is."""
BOOLEAN = 1
"""Everything that matches, within a range."""

STATIONARY = 2
"""The k best where the subscription stands, kept right by the server alone."""

_KIND_SHIFT = 48


def handle_of(kind: int, number: int) -> int:
    """Return the handle of the subscription of this number; numbers are below 2**48."""
    return kind << _KIND_SHIFT | number


def kind_of(handle: int) -> int:
    """Return the kind of a subscription."""
    return handle >> _KIND_SHIFT


def kinds_of(handles: Ints) -> Ints:
    """Return the kind of each subscription."""
    kinds: Ints = handles >> _KIND_SHIFT
    return kinds


def numbers_of(handles: Ints) -> Ints:
    """Return the number of each subscription within its kind."""
    numbers: Ints = handles & ((1 << _KIND_SHIFT) - 1)
    return numbers


CHANGE_DTYPE = np.dtype(
    [
        ("handle", np.int64),
        ("object_id", np.int64),
        ("r_m", np.float64),  # of what is added; 0 where texts are not compared
        ("is_drop", np.int8),
    ],
    align=True,
)
"""One object that enters or leaves one buffer."""


def grouped(changes: Rows, *, undo: bool = False) -> Rows:
    """Return changes by subscription, what leaves before what enters, by object.

    Parameters
    ----------
    changes
        In any order.
    undo
        Whether an object that both enters and leaves is left out.
    """
    handles: Ints = changes["handle"].copy()
    order = order_of(handles, np.arange(len(changes)))
    found: Rows = changes[order[: group(changes, order, int(undo))]]
    return found


class Positions(NamedTuple):
    """Where the devices of subscriptions are, in plane metres, and how they move, as far as is known."""

    handles: Ints
    x_m: Floats
    y_m: Floats
    heading_rad: Floats | None = None
    """Clockwise from north; NaN or None where unknown."""
    speed_mps: Floats | None = None
    """NaN or None where unknown."""
    margin_m: Floats | None = None
    """How far off the positions may be, at most; None for not at all."""

    def part(self, rows: slice | Bools) -> Positions:
        """Return some of them."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        columns = (self.heading_rad, self.speed_mps, self.margin_m)
        heading, speed, margin = (None if column is None else column[rows] for column in columns)
        return Positions(self.handles[rows], self.x_m[rows], self.y_m[rows], heading, speed, margin)


class Bounds(NamedTuple):
    """Where subscriptions were evaluated, and a pair that says how far that holds.

    The pair is the reach (length, object id) of a top-k subscription, and the slack of a boolean one with
    1 if it has too many matches, else 0.
    """

    x_m: Floats
    y_m: Floats
    bound_m: Floats
    bound_id: Ints


class Published(NamedTuple):
    """What new objects did.

    Parameters
    ----------
    changes
        What entered and left buffers.
    rebound
        Subscriptions whose bound is another: their devices must know even if nothing else changed.
    pending
        Subscriptions that wait for the position of their device before they can be decided, each once.
    left
        What has left buffers before that: it does not count any more in windows of so many objects.
    """

    changes: Rows
    rebound: Ints
    pending: Ints
    left: Rows = np.empty(0, dtype=CHANGE_DTYPE)


class Settled(NamedTuple):
    """What was brought up to date of subscriptions with too many matches.

    Parameters
    ----------
    changes
        What entered and left what is held.
    rebound
        Subscriptions that have not too many any more, each once.
    """

    changes: Rows
    rebound: Ints


Specs_contra = TypeVar("Specs_contra", contravariant=True)
"""What subscriptions of a kind ask for, in arrays."""


class Matcher(Protocol[Specs_contra]):
    """One kind of subscription: who holds what, and how far that holds."""

    def subscribe(self, handles: Ints, specs: Specs_contra) -> None:
        """Make subscriptions known, parked; `evaluate` wakes them. Handles were never used before."""

    def unsubscribe(self, handles: Ints) -> None:
        """Forget subscriptions."""

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Nothing happens to those parked already."""

    def are_awake(self, handles: Ints) -> Bools:
        """Whether each subscription is evaluated."""

    def are_pending(self, handles: Ints) -> Bools:
        """Whether something waits for the position of each subscription's device."""

    def retrieve(self, positions: Positions) -> object | None:
        """Look up what `evaluate` will need there; None if there is nothing to be done before.

        It may run in another thread while objects stay as they are and no subscription begins or ends;
        others may be evaluated meanwhile. Nothing that anybody sees changes.
        """

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:
        """Evaluate subscriptions where their devices are; wake those that are parked.

        `retrieved` is what `retrieve` has said of these positions, if nothing has changed since. Returns
        what enters and leaves buffers (`CHANGE_DTYPE`), grouped by subscription.
        """

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Take note of new objects, which are in the table already."""

    def remove(self, slots: Slots, *, notify: bool) -> Rows:
        """Take objects out of all buffers, which are in the table still; return that, if it is told."""

    def leave(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        """Take objects out of the buffers of subscriptions of a window: they do not count in it any more.

        Returns that, if it is told.
        """

    def refill(self) -> Rows:
        """Replace what has gone, which is not in the table any more; return what enters and leaves."""

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return ids and text shares of what the device of a subscription holds."""

    def bounds(self, handles: Ints) -> Bounds:
        """Return how far what devices hold is right."""

    def outdated(self, count: int) -> Positions:
        """Return where some subscriptions, at most so many, were evaluated by weights of before."""

    def search(self, specs: Specs_contra, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the results of subscriptions at one place each, now, for nobody in particular."""

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions, those of all their clauses together."""

    def memory_bytes(self) -> int:
        """Size of all arrays."""

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """

    def __len__(self) -> int: ...
