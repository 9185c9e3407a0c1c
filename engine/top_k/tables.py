"""Hold the data of the top-k matcher: rows of subscriptions, buffers, pending objects, the index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.contracts import Bools, Positions, Rows
from engine.objects import Objects
from engine.options import EngineOptions
from engine.subscription_indexes import Numbers, SubscriptionIndexes, index_numbers
from engine.top_k import region_kernels
from engine.top_k.buffers import Buffers
from engine.top_k.layout import NO_PENDING, SUBSCRIPTION_DTYPE
from engine.top_k.pending import Pending
from index.batches import InterestBatch, Ints, ReachBatch
from index.tables import SlotTable
from index.tables.slots import Slots


class TopKTables:
    """Subscriptions, and the objects that their devices hold.

    Parameters
    ----------
    objects
        The live objects, common to all matchers.
    options
        The choice of the indexes that find the subscriptions that a new object affects.
    """

    def __init__(self, objects: Objects, options: EngineOptions) -> None:
        self.objects = objects
        self.subscriptions = SlotTable(SUBSCRIPTION_DTYPE)
        self.buffers = Buffers()
        self.pending = Pending()
        self.indexes = SubscriptionIndexes(options.subscription_index, options.weighted_index)
        self.reaches: Callable[[Slots], ReachBatch] = self.reaches_of
        """Returns the places and reaches of subscriptions for the index."""

    def are_pending(self, handles: Ints) -> Bools:
        """Return whether an object waits for the position of each subscription's device."""
        if not len(self.pending):
            return np.zeros(len(handles), dtype=np.bool_)
        first = self.subscriptions.rows["first_pending"][self.subscriptions.slots(handles)]
        pending: Bools = first != NO_PENDING
        return pending

    def rows(self, handles: Ints) -> Rows:
        """Return the rows of subscriptions, copied (`layout.SUBSCRIPTION_DTYPE`)."""
        found: Rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        return found

    def anchors(self, slots: Slots) -> Positions:
        """Return the anchors of subscriptions, as positions of their devices."""
        rows = self.subscriptions.rows[slots]
        handles, x_m, y_m = (rows[name].copy() for name in ("id", "x_m", "y_m"))
        return Positions(handles, x_m, y_m, speed_mps=rows["speed_mps"].astype(np.float64))

    def interests(self, slots: Slots) -> InterestBatch:
        """Return the interests of subscriptions."""
        table = self.subscriptions
        weight_m, similarity = table.rows["weight_m"][slots], table.rows["similarity"][slots]
        return self.objects.weighed(InterestBatch(weight_m, similarity, table.keyword_lists(slots)))

    def index_numbers(self, slots: Slots) -> Numbers:
        """Return the index number of each subscription that is evaluated now."""
        similarity = self.subscriptions.rows["similarity"][slots]
        return index_numbers(similarity, self.objects.weights.current)

    def reaches_of(self, slots: Slots) -> ReachBatch:
        """Return discs about anchors, or about the ellipses of the mode ELLIPSE, with their reaches."""
        rows = self.subscriptions.rows
        count = len(slots)
        batch = ReachBatch(
            rows["id"][slots],
            np.empty(count),
            np.empty(count),
            np.empty(count),
            np.empty(count),
            np.empty(count, dtype=np.int64),
        )
        region_kernels.fill_reaches(
            self.objects.table.rows,
            rows,
            self.buffers.holdings,
            slots,
            batch.x_m,
            batch.y_m,
            batch.radius_m,
            batch.reach_m,
            batch.reach_id,
            np.empty((3, int(rows["buffer_room"][slots].max()))),
        )
        return batch
