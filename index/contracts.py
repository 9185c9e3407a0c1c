"""The contracts of all indexes. One suite in `tests/index` runs every implementation against them.

An implementation owns its state, validates its arguments before it changes anything, and loops in
kernels. The caller chooses the ids: any int64, unique among the items of an index.
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
    """Finds the top-k subscriptions that a new object affects.

    A subscription at a with radius_m, reach (reach_m, reach_id) and an interest matches an object o iff
    they share a keyword and (max(0, |a o| - radius_m) + r(o), o.id) < (reach_m, reach_id), compared as a
    pair: the least length that o can have for a device within radius_m of a. For an anchor, with a radius
    of 0, that is the length at the anchor.

    Either all interests in an index are of `Similarity.TFIDF`, or none is. In an index of TFIDF a keyword
    has one weight, and the objects to match have their norms. To change weights, the caller makes another
    index.
    """

    def insert(self, reaches: ReachBatch, interests: InterestBatch) -> None:
        """Add subscriptions: each row of both batches belongs to the same subscription.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is inserted.
        """

    def move(self, reaches: ReachBatch) -> None:
        """Change the positions and reaches of subscriptions.

        Raises
        ------
        KeyError
            If an id is absent. Nothing is moved.
        """

    def remove(self, ids: Ints) -> None:
        """Remove subscriptions.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """

    def match(self, objects: ObjectBatch) -> Matches:
        """Return exactly the subscriptions that match each object, each once.

        An index that adapts to the distribution of objects learns from these objects.
        """

    def observe(self, objects: ObjectBatch) -> None:
        """Learn the distribution of objects, as `match` does, without matching.

        The caller passes objects that are published while the index is empty: later placements of
        subscriptions may depend on them. An index that does not adapt does nothing.
        """

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""

    def __len__(self) -> int: ...


class ClauseIndex(Protocol):
    """Finds the clauses of boolean subscriptions that a new object matches.

    A clause is a set of required keywords, at least one, and a box. It matches an object iff the object
    has all of them, and the object's box (usually a point) intersects its own; both are closed. The
    caller tests the shape that the box bounds, and excluded keywords.
    """

    @property
    def candidate_count(self) -> int:
        """Return the number of clauses that `match` has tested one by one so far."""

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> None:
        """Add clauses: row i of every argument belongs to clause i.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is inserted.
        ValueError
            If a clause requires no keyword, or a box is not finite or is inverted. Nothing is inserted.
        """

    def move(self, ids: Ints, boxes: Boxes) -> None:
        """Change the boxes of clauses.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is moved.
        ValueError
            If a box is not finite or is inverted. Nothing is moved.
        """

    def remove(self, ids: Ints) -> None:
        """Remove clauses.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """

    def match(self, objects: ObjectBatch) -> Matches:
        """Return exactly the clauses that match each object, each once."""

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""

    def __len__(self) -> int: ...


class MovingIndex(Protocol):
    """Finds the matches that start and end when clauses move and objects appear and disappear.

    A clause matches an object as in a `ClauseIndex`. The index holds an object from its publication until
    it is retracted or expires: from `expiry_ms` on, an object is in no result. Boxes may lie anywhere,
    also across the border of the area that an index assumes.
    """

    @property
    def candidate_count(self) -> int:
        """Return the number of clauses and objects tested one by one so far."""

    @property
    def object_count(self) -> int:
        """Return the number of live objects. Up to O(objects)."""

    def insert(self, ids: Ints, boxes: Boxes, required: KeywordLists) -> Matches:
        """Add clauses; return, for each, the live objects that it matches, each once.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is inserted.
        ValueError
            If a clause requires no keyword, or a box is not finite or is inverted. Nothing is inserted.
        """

    def move(self, ids: Ints, boxes: Boxes, same: Boxes | None = None) -> Moves:
        """Change the boxes of clauses; return the matches of each that start and end.

        These are the live objects that the clause matches now and did not match before, and those that it
        matched before and does not match now, each once.

        Parameters
        ----------
        ids, boxes
            The clauses, and their new boxes.
        same
            For boxes that bound other shapes, such as circles: a box for each clause. The caller knows
            that the results of the shape do not change for objects that lie within this box. Every other
            object that intersects both the old and the new box is returned as a match that starts.
            Nothing lies within an inverted box. None if the boxes are the shapes themselves: matches do
            not change for objects that intersect both boxes.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is moved.
        ValueError
            If a box is not finite or is inverted. Nothing is moved.
        """

    def remove(self, ids: Ints) -> None:
        """Remove clauses.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """

    def publish(self, objects: ObjectBatch, expiry_ms: Ints) -> Matches:
        """Add objects; return, for each, the clauses that match it, each once.

        An object that has already expired matches nothing. An id may be reused when its object has been
        retracted or has expired.

        Raises
        ------
        KeyError
            If the object of an id is alive, or an id is twice in the batch. Nothing is published.
        ValueError
            If an object has no keyword. Nothing is published.
        """

    def match(self, objects: ObjectBatch) -> Matches:
        """Return exactly the clauses that match each object, published or not, each once."""

    def retract(self, ids: Ints) -> Matches:
        """Remove objects; return, for each, the clauses that matched it, each once.

        Raises
        ------
        KeyError
            If no object of an id is alive, or an id is twice in the batch. Nothing is retracted.
        """

    def pass_time(self, now_ms: int) -> None:
        """Set the time: objects with `expiry_ms <= now_ms` are in no result from now on.

        The index frees their memory gradually.

        Raises
        ------
        ValueError
            If a later time was set before.
        """

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """

    def memory_bytes(self) -> int:
        """Return the size of all arrays."""

    def __len__(self) -> int:
        """Return the number of clauses."""


class PlaceIndex(Protocol):
    """Finds the objects in boxes."""

    def insert(self, objects: ObjectBatch) -> None:
        """Add objects.

        Raises
        ------
        KeyError
            If an id is already present, or twice in the batch. Nothing is inserted.
        """

    def remove(self, ids: Ints) -> None:
        """Remove objects.

        Raises
        ------
        KeyError
            If an id is absent, or twice in the batch. Nothing is removed.
        """

    def within(self, required: KeywordLists, boxes: Boxes) -> Matches:
        """Return, for each row, exactly the objects with all its keywords in its box, each once.

        Boxes are closed. The position of an object decides, whatever its area. A row without keywords
        matches nothing.
        """

    def memory_bytes(self) -> int:
        """Return the size of everything it holds, including the capacity for growth."""

    def check(self) -> None:
        """Verify every invariant.

        Raises
        ------
        InconsistentIndexError
            If an invariant is violated; the message names it.
        """

    def __len__(self) -> int: ...


class ObjectIndex(PlaceIndex, Protocol):
    """Finds the objects in boxes, and the best objects for an interest at a position.

    Queries may have interests of `Similarity.TFIDF` if all objects were inserted with their norms.
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
        """Return, for each interest at its position, the `count` objects of least (length, id).

        Parameters
        ----------
        interests, x_m, y_m, count
            The queries: interests, positions, and the number of objects to return for each.
        bound_m
            Objects of a greater length are omitted. A caller that knows an upper bound on the lengths of
            its result passes it to make the search cheaper (infinity for none).
        first_id
            Objects of smaller ids are omitted: they lie outside the window. None for no window at all.
        """
