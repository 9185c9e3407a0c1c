"""Spans of postings; free ones are chained by length."""

from __future__ import annotations

from index.batches import Ints
from index.published.sq_tree.layout import Rows, Slots
from index.tables.free_kernels import give_back_rows, take_rows
from safe_region.jit import kernel


@kernel
def take(subscriptions: Rows, postings: Rows, free: Slots, slots: Slots, ends: Ints) -> None:
    """Allocate a free span of its length, or a new one, to each subscription."""
    for i in range(slots.shape[0]):
        count = subscriptions[slots[i]]["keyword_count"]
        start = take_rows(postings["next"], free, count, ends, 0, count)
        subscriptions[slots[i]]["posting_start"] = start


@kernel
def give_back(subscriptions: Rows, postings: Rows, free: Slots, slots: Slots) -> None:
    """Free the spans of these subscriptions."""
    for i in range(slots.shape[0]):
        count = subscriptions[slots[i]]["keyword_count"]
        start = subscriptions[slots[i]]["posting_start"]
        give_back_rows(postings["next"], free, count, start)
