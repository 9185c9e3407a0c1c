"""What the engine has: rows of objects and subscriptions, buffers, two indexes; and how to read them."""

from __future__ import annotations

import numpy as np

from engine.batches import EngineOptions
from engine.top_k import region_kernels
from engine.top_k.buffers import Buffers
from engine.top_k.layout import OBJECT_DTYPE, SUBSCRIPTION_DTYPE, Rows
from engine.turnover import Turnover
from index.batches import Floats, InterestBatch, Ints, Ranking, ReachBatch
from index.tables import SlotTable
from index.tables.slots import Slots


class Tables:
    """Objects, subscriptions, and what devices hold.

    Parameters
    ----------
    options
        Buffer size and the choice of indexes.
    """

    def __init__(self, options: EngineOptions | None = None) -> None:
        self.options = options or EngineOptions()
        self.now_ms = 0
        self.objects = SlotTable(OBJECT_DTYPE)
        self.subscriptions = SlotTable(SUBSCRIPTION_DTYPE)
        self.buffers = Buffers()
        self.object_index = self.options.object_index()
        self.subscription_index = self.options.subscription_index()
        self._arrivals = Turnover()
        self._departures = Turnover()

    def is_awake(self, handle: int) -> bool:
        """Whether a subscription is evaluated."""
        return bool(self.row(handle)["is_awake"])

    def are_awake(self, handles: Ints) -> list[bool]:
        """Whether each subscription is evaluated."""
        slots = self.subscriptions.slots(handles)
        awake: list[bool] = (self.subscriptions.rows["is_awake"][slots] == 1).tolist()
        return awake

    def rows(self, handles: Ints) -> Rows:
        """Return the rows of subscriptions, copied (`layout.SUBSCRIPTION_DTYPE`)."""
        found: Rows = self.subscriptions.rows[self.subscriptions.slots(handles)]
        return found

    def row(self, handle: int) -> np.void:
        """Return the row of one subscription (`layout.SUBSCRIPTION_DTYPE`)."""
        (slot,) = self.subscriptions.slots(np.array([handle], dtype=np.int64))
        found: np.void = self.subscriptions.rows[slot]
        return found

    def buffer(self, handle: int) -> tuple[Ints, Floats]:
        """Return ids and text shares of what the device of a subscription holds."""
        row = self.row(handle)
        start = int(row["buffer_start"])
        held = self.buffers.holdings[start : start + int(row["buffer_count"])]
        return self.objects.rows["id"][held["object"]], held["r_m"].copy()

    def search(self, interests: InterestBatch, k: Ints, x_m: Floats, y_m: Floats) -> Ranking:
        """Return the k best at each place, now, for nobody in particular."""
        return self.object_index.best(interests, x_m, y_m, k, np.full(len(k), np.inf))

    def regions_of(self, handles: Ints) -> ReachBatch:
        """Return where the subscription index looks for subscriptions, and how far."""
        return self._regions(self.subscriptions.slots(handles))

    def _interests(self, slots: Slots) -> InterestBatch:
        table = self.subscriptions
        weight_m, similarity = table.rows["weight_m"][slots], table.rows["similarity"][slots]
        return InterestBatch(weight_m, similarity, table.keyword_lists(slots))

    def _regions(self, slots: Slots) -> ReachBatch:
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
            self.objects.rows,
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
