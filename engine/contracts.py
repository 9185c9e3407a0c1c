"""Define the matcher: it evaluates one kind of subscription over the common table of objects.

Arrays in, arrays out. A matcher trusts its caller: handles are new or known as each method requires,
objects exist, time does not go backwards. Within an instant the engine applies: expire, remove, publish,
evaluate.

Handles are the caller's numbers of subscriptions. Their upper bits are the kind, so a handle shows to
which matcher it belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from engine.change_kernels import group
from index.batches import Floats, Ints, KeywordLists, ObjectBatch, Ranking
from index.tables.order_kernels import order_of
from index.tables.slots import Slots

Rows = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
_Scalar = TypeVar("_Scalar", bound=np.generic)

TOP_K = 0
"""The k best objects, wherever the device is."""
BOOLEAN = 1
"""All matching objects within a range."""

STATIONARY = 2
"""The k best objects at the subscription's fixed place; the server alone keeps them correct."""

_KIND_SHIFT = 48


def handle_of(kind: int, number: int) -> int:
    """Return the handle of the subscription with this number; numbers are below 2**48."""
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
        ("r_m", np.float64),  # of an added object; 0 where texts are not compared
        ("is_drop", np.int8),
    ],
    align=True,
)
"""One object that enters or leaves one buffer."""


def concatenated(parts: Sequence[npt.NDArray[_Scalar]]) -> npt.NDArray[_Scalar]:
    """Return arrays of one type as one; if only one of them is not empty, that one and no copy.

    `np.concatenate` takes 8 us to compare the types of three empty arrays of changes.
    """
    some = [one for one in parts if len(one)]
    if len(some) > 1:
        return np.concatenate(some)
    return some[0] if some else parts[0]


def grouped(changes: Rows, *, undo: bool = False) -> Rows:
    """Return changes by subscription, objects that leave before those that enter, by object id.

    Parameters
    ----------
    changes
        In any order.
    undo
        Whether to omit an object that both enters and leaves.
    """
    if not len(changes):
        return changes
    handles: Ints = changes["handle"].copy()
    order = order_of(handles, np.arange(len(changes)))
    found: Rows = changes[order[: group(changes, order, int(undo))]]
    return found


class Positions(NamedTuple):
    """Positions of subscriptions' devices, in plane metres, and their motion, as far as it is known."""

    handles: Ints
    x_m: Floats
    y_m: Floats
    heading_rad: Floats | None = None
    """Clockwise from north; NaN or None where unknown."""
    speed_mps: Floats | None = None
    """NaN or None where unknown."""
    margin_m: Floats | None = None
    """The largest error of each position; None if positions are exact."""

    def part(self, rows: slice | Bools) -> Positions:
        """Return some of the rows."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        columns = (self.heading_rad, self.speed_mps, self.margin_m)
        heading, speed, margin = (None if column is None else column[rows] for column in columns)
        return Positions(self.handles[rows], self.x_m[rows], self.y_m[rows], heading, speed, margin)


class Bounds(NamedTuple):
    """The places where subscriptions were evaluated, and a pair that bounds the validity of each result.

    The pair is the reach (length, object id) of a top-k subscription. For a boolean one it is the slack,
    with 1 if it has too many matches, else 0.
    """

    x_m: Floats
    y_m: Floats
    bound_m: Floats
    bound_id: Ints


class Published(NamedTuple):
    """The effects of new objects.

    Parameters
    ----------
    changes
        Objects that entered and left buffers.
    rebound
        Subscriptions with a new bound: their devices must get it even if nothing else changed.
    pending
        Subscriptions that need the position of their device before they can be decided, each once.
    left
        Objects that left buffers before these changes: they no longer count in windows of the last n
        objects.
    """

    changes: Rows
    rebound: Ints
    pending: Ints
    left: Rows = np.empty(0, dtype=CHANGE_DTYPE)

    @classmethod
    def nothing(cls) -> Published:
        """Return the effects of objects that affect no subscription."""
        none = np.empty(0, dtype=np.int64)
        return cls(np.empty(0, dtype=CHANGE_DTYPE), none, none)


class Settled(NamedTuple):
    """The changes of subscriptions with too many matches that were settled.

    Parameters
    ----------
    changes
        Objects that entered and left buffers.
    rebound
        Subscriptions that no longer have too many matches, each once.
    """

    changes: Rows
    rebound: Ints

    @classmethod
    def nothing(cls) -> Settled:
        """Return no changes."""
        return cls(np.empty(0, dtype=CHANGE_DTYPE), np.empty(0, dtype=np.int64))


Specs_contra = TypeVar("Specs_contra", contravariant=True)
"""The specs of subscriptions of one kind, in arrays."""


class Matcher(Protocol[Specs_contra]):
    """A matcher of one kind of subscription: the objects in each buffer, and their bounds."""

    def subscribe(self, handles: Ints, specs: Specs_contra) -> None:
        """Add subscriptions, parked; `evaluate` wakes them. Their handles were never used before."""

    def unsubscribe(self, handles: Ints) -> None:
        """Remove subscriptions."""

    def park(self, handles: Ints) -> None:
        """Stop evaluating subscriptions until `evaluate`. Those that are already parked do not change."""

    def are_awake(self, handles: Ints) -> Bools:
        """Return whether each subscription is evaluated."""

    def are_pending(self, handles: Ints) -> Bools:
        """Return whether an object waits for the position of each subscription's device."""

    def retrieve(self, positions: Positions) -> object | None:
        """Look up data for `evaluate` at these positions; return None if nothing can be prepared.

        It may run in another thread while objects do not change and no subscription starts or ends; other
        subscriptions may be evaluated meanwhile. It changes no visible state.
        """

    def evaluate(self, positions: Positions, retrieved: object | None = None) -> Rows:
        """Evaluate subscriptions at the positions of their devices; wake those that are parked.

        `retrieved` is the result of `retrieve` for these positions, if nothing has changed since then.
        Returns the objects that enter and leave buffers (`CHANGE_DTYPE`), grouped by subscription.
        """

    def publish(self, objects: ObjectBatch, slots: Slots) -> Published:
        """Match new objects, which are already in the table."""

    def remove(self, slots: Slots, *, notify: bool) -> Rows:
        """Remove objects from all buffers while they are still in the table.

        Returns these changes if `notify` is set.
        """

    def leave(self, slots: Slots, window: int, *, notify: bool) -> Rows:
        """Remove objects that no longer count in a window from the buffers of its subscriptions.

        Returns these changes if `notify` is set.
        """

    def refill(self) -> Rows:
        """Replace objects that are gone from the table; return the changes of buffers."""

    def held(self, handle: int) -> tuple[Ints, Floats]:
        """Return the ids of the objects that a subscription's device holds, and their constant parts."""

    def bounds(self, handles: Ints) -> Bounds:
        """Return the bounds of the validity of the devices' buffers."""

    def outdated(self, count: int) -> Positions:
        """Return up to `count` subscriptions that earlier weights evaluated, at their previous places."""

    def search(self, specs: Specs_contra, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the current results of specs at one place each, without adding a subscription."""

    def keyword_lists(self, handles: Ints) -> KeywordLists:
        """Return the keywords of subscriptions, those of all their clauses together."""

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""

    def check(self) -> None:
        """Verify every invariant from the definitions. O(subscriptions * objects).

        Raises
        ------
        InconsistentIndexError
            Names the invariant that does not hold.
        """

    def __len__(self) -> int: ...
