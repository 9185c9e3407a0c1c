"""What every index does. One suite in `tests/index` runs every implementation against these words.

An implementation owns its state, validates what it is given before it changes anything, and loops in
kernels. Ids are the caller's, any int64, unique among what is in the index.
"""

from __future__ import annotations

from typing import Protocol

from index.batches import (
    Boxes,
    Floats,
    InterestBatch,
    Ints,
    KeywordLists,
    Matches,
    Moves,
    ObjectBatch,
    Ranking,
    ReachBatch,
)


class InconsistentIndexError(AssertionError):
    """`check` found a structure that contradicts itself."""


class SubscriptionIndex(Protocol):
    """Tells who is affected by a new object.

    A subscription at a with radius_m, reach (reach_m, reach_id) and an interest matches an object o iff
    they share a keyword and (max(0, |a o| - radius_m) + r(o), o.id) < (reach_m, reach_id), compared as a
    pair: the least length that o can have for a device within radius_m of a. For an anchor, whose radius
    is 0, that is the length at the anchor.

    An index is given interests of `Similarity.TFIDF` only, or none. In one with them a keyword has one
    weight, and objects that are matched have their norms. Whoever changes weights makes another index.
    """

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions, row by row the same in both batches.

        Raises
        ------
        KeyError
            If an id is there already, or twice in the batch. Nothing is inserted.
        """

    def move(self, reaches: ReachBatch) -> None:
        """Give subscriptions a new place and reach.

        Raises
        ------
        KeyError
            If an id is not there. Nothing is moved.
        """

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions.

        Raises
        ------
        KeyError
            If an id is not there, or twice in the batch. Nothing is removed.
        """

    def match(self, objects: ObjectBatch) -> Matches:
        """Exactly the subscriptions that match each object, each once.

        An index that learns what objects are like learns it from these.
        """

    def observe(self, objects: ObjectBatch) -> None:
        """Learn what objects are like, as `match` does, without matching them.

        For objects that are published while the index is empty: where it places subscriptions later may
        depend on them. An index that learns nothing does nothing.
        """

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """

    def memory_bytes(self) -> int:
        """Size of all arrays."""

    def __len__(self) -> int: ...


class ClauseIndex(Protocol):
    """Tells which clauses of boolean subscriptions a new object matches.

    A clause is a set of required keywords, at least one, and a box. It matches an object iff the object
    has all of them, and the box of the object (a point, mostly) meets its own; both are closed. The
    caller looks at what the box stands for, and at keywords that an object must not have.
    """

    @property
    def candidate_count(self) -> int:
        """How many clauses `match` has looked at one by one, since the beginning."""

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses, row by row the same in all arguments.

        Raises
        ------
        KeyError
            If an id is there already, or twice in the batch. Nothing is inserted.
        ValueError
            If a clause requires no keyword, or a box is not finite or turned over. Nothing is inserted.
        """

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Give clauses new boxes.

        Raises
        ------
        KeyError
            If an id is not there, or twice in the batch. Nothing is moved.
        ValueError
            If a box is not finite or turned over. Nothing is moved.
        """

    def remove(self, ids: Ints) -> None:
        """Remove clauses.

        Raises
        ------
        KeyError
            If an id is not there, or twice in the batch. Nothing is removed.
        """

    def match(self, objects: ObjectBatch) -> Matches:
        """Exactly the clauses that match each object, each once."""

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """

    def memory_bytes(self) -> int:
        """Size of all arrays."""

    def __len__(self) -> int: ...


class MovingIndex(Protocol):
    """Tells what begins and ceases to match, when clauses move and objects come and go.

    A clause matches an object as in a `ClauseIndex`. Objects are kept from when they are published until
    they are retracted or their time is over: at `expiry_ms` an object is in no result any more. Boxes may
    lie anywhere, also across the border of what an index takes for its area.
    """

    @property
    def candidate_count(self) -> int:
        """How many clauses and objects were looked at one by one, since the beginning."""

    @property
    def object_count(self) -> int:
        """How many objects are alive. Up to O(objects)."""

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> Matches:
        """Add clauses; return, for each, the live objects that it matches, each once.

        Raises
        ------
        KeyError
            If an id is there already, or twice in the batch. Nothing is inserted.
        ValueError
            If a clause requires no keyword, or a box is not finite or turned over. Nothing is inserted.
        """

    def move(self, ids: Ints, boxes: Boxes, same: Boxes | None = None) -> Moves:
        """Give clauses new boxes; return what each begins and ceases to match.

        That is, the live objects that it matches now and did not before, and those that it matched and
        does not any more, each once.

        Parameters
        ----------
        ids, boxes
            The clauses, and their new boxes.
        same
            For boxes that stand for other shapes, as those about circles do: a box for each clause; of
            what lies within it the caller knows that nothing changes. Whatever else both the old and the
            new box meet is told as what begins. A box that is turned over has nothing within it. None
            for boxes that stand for themselves: whatever both meet is the same.

        Raises
        ------
        KeyError
            If an id is not there, or twice in the batch. Nothing is moved.
        ValueError
            If a box is not finite or turned over. Nothing is moved.
        """

    def remove(self, ids: Ints) -> None:
        """Remove clauses.

        Raises
        ------
        KeyError
            If an id is not there, or twice in the batch. Nothing is removed.
        """

    def publish(self, objects: ObjectBatch, expiry_ms: Ints) -> Matches:
        """Add objects; return, for each, the clauses that match it, each once.

        What has expired already matches nothing. An id may be used again when its object was retracted,
        or has expired.

        Raises
        ------
        KeyError
            If an object of an id is alive, or an id is twice in the batch. Nothing is published.
        ValueError
            If an object has no keyword. Nothing is published.
        """

    def match(self, objects: ObjectBatch) -> Matches:
        """Exactly the clauses that match each object, each once, whether it is published or not."""

    def retract(self, ids: Ints) -> Matches:
        """Remove objects; return, for each, the clauses that matched it, each once.

        Raises
        ------
        KeyError
            If no object of an id is alive, or an id is twice in the batch. Nothing is retracted.
        """

    def pass_time(self, now_ms: int) -> None:
        """Say what time it is: objects with `expiry_ms <= now_ms` are in no result any more.

        Their memory is given back by and by.

        Raises
        ------
        ValueError
            If it was later already.
        """

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """

    def memory_bytes(self) -> int:
        """Size of all arrays."""

    def __len__(self) -> int:
        """Return how many clauses there are."""


class PlaceIndex(Protocol):
    """Tells what lies in boxes."""

    def insert(self, objects: ObjectBatch) -> None:
        """Add objects.

        Raises
        ------
        KeyError
            If an id is there already, or twice in the batch. Nothing is inserted.
        """

    def remove(self, ids: Ints) -> None:
        """Remove objects.

        Raises
        ------
        KeyError
            If an id is not there, or twice in the batch. Nothing is removed.
        """

    def within(self, required: KeywordLists, boxes: Boxes) -> Matches:
        """For each row, exactly the objects that have all its keywords and lie in its box, each once.

        Boxes are closed. An object lies where its position is, whatever its area. A row without keywords
        finds nothing.
        """

    def memory_bytes(self) -> int:
        """Size of everything it holds, room for growth included."""

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            Naming what does not hold.
        """

    def __len__(self) -> int: ...


class ObjectIndex(PlaceIndex, Protocol):
    """Tells what lies in boxes, and what is best here.

    Interests of `Similarity.TFIDF` may be asked for if all objects were inserted with their norms.
    """

    def best(
        self,
        interests: InterestBatch,
        x_m: Floats,
        y_m: Floats,
        count: Ints,
        bound_m: Floats,
        first_id: Ints | None = None,
    ) -> Ranking:
        """For each interest at its position, the `count` objects of least (length, id).

        Parameters
        ----------
        interests, x_m, y_m, count
            What is looked for, where, and how many.
        bound_m
            Objects of a greater length are left out; a caller that knows an upper bound of what it looks
            for makes the search cheaper by it (infinity for none).
        first_id
            Objects of smaller ids are left out: they lie outside the window. None for no window at all.
        """
