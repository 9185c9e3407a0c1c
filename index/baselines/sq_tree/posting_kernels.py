"""Stretches of postings; free ones are chained by length."""

from __future__ import annotations

from index.baselines.sq_tree.layout import NOTHING, Rows, Slots
from safe_region.jit import kernel


@kernel
def take(subscriptions: Rows, postings: Rows, free: Slots, slots: Slots, end: int) -> int:
    """Give each subscription a free stretch of its length or a new one; return the new end."""
    for i in range(slots.shape[0]):
        count = subscriptions[slots[i]]["keyword_count"]
        start = free[count]
        if start == NOTHING:
            start = end
            end += count
        else:
            free[count] = postings[start]["next"]
        subscriptions[slots[i]]["posting_start"] = start
    return end


@kernel
def give_back(subscriptions: Rows, postings: Rows, free: Slots, slots: Slots) -> None:
    """Chain the stretches of these subscriptions as free."""
    for i in range(slots.shape[0]):
        count = subscriptions[slots[i]]["keyword_count"]
        start = subscriptions[slots[i]]["posting_start"]
        postings[start]["next"] = free[count]
        free[count] = start
