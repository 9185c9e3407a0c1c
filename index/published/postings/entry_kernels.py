"""Entries of objects: writing, scanning for a box, and sweeping after removals.

A removed object stays in its lists, marked as removed, until they are swept: one list after the other,
some entries a call.

Operations: write O(keywords), scan and sweep O(entries), and O(keywords) for each entry that a scan does
not exclude by its position and its signature.
"""

from __future__ import annotations

from typing import NamedTuple

from index.batches import Ints
from index.published.postings.layout import LIST_END, SWEPT, Files
from index.published.postings.list_kernels import keep_entries
from index.tables.float32_kernels import lower
from index.tables.run_kernels import NO_RUN
from index.tables.signature_kernels import short_signature_of
from index.tables.within_kernels import Wanted, is_wanted, keep
from safe_region.jit import kernel, leaf


class Frame(NamedTuple):
    """The conditions on an entry under which its object may match."""

    x1_m: float  # rounded as entries are
    y1_m: float
    x2_m: float
    y2_m: float
    signature: int


@leaf
def frame_of(wanted: Wanted) -> Frame:
    """Return the conditions of a query on entries. O(keywords)."""
    return Frame(
        lower(wanted.x1_m),
        lower(wanted.y1_m),
        lower(wanted.x2_m),
        lower(wanted.y2_m),
        short_signature_of(wanted.words),
    )


@leaf
def signature_in(files: Files, slot: int) -> int:
    """Return the signature of an object."""
    row = files.rows[slot]
    start = row["keyword_start"]
    return short_signature_of(files.pool[start : start + row["keyword_count"]])


@leaf
def write_object(files: Files, place: int, slot: int, signature: int) -> None:
    """Write the entry of an object."""
    entry = files.entries.records[place]
    row = files.rows[slot]
    entry["x_m"] = lower(row["x_m"])
    entry["y_m"] = lower(row["y_m"])
    entry["signature"] = signature
    entry["slot"] = slot


@leaf
def scan(files: Files, number: int, wanted: Wanted, frame: Frame, found: Ints, total: int) -> int:
    """Keep the matching entries of a list; return the new number of results."""
    start = int(files.lists[number]["start"])
    for place in range(start, start + int(files.lists[number]["count"])):
        entry = files.entries.records[place]
        if not (frame.x1_m <= entry["x_m"] <= frame.x2_m and frame.y1_m <= entry["y_m"] <= frame.y2_m):
            continue
        if entry["signature"] & frame.signature != frame.signature:
            continue
        slot = entry["slot"]
        if not files.is_gone[slot] and is_wanted(wanted, files.rows[slot], files.pool):
            total = keep(found, total, files.rows[slot]["id"])
    return total


@leaf
def _sweep_list(files: Files, number: int) -> None:
    """Remove the entries of removed objects from a list."""
    records = files.entries.records
    start = int(files.lists[number]["start"])
    kept = start
    for place in range(start, start + int(files.lists[number]["count"])):
        if not files.is_gone[records[place]["slot"]]:
            if kept < place:
                records[kept] = records[place]
            kept += 1
    keep_entries(files, number, kept - start)


@kernel
def sweep(files: Files, budget: int) -> bool:
    """Remove the entries of removed objects from some more lists; return whether all lists are done.

    `budget` is the number of entries to examine; the last list is completed.
    """
    meta = files.meta
    number = int(meta[SWEPT])
    end = int(meta[LIST_END])
    while number < end and budget > 0:
        budget -= 1
        if files.lists[number]["size_class"] != NO_RUN:
            budget -= int(files.lists[number]["count"])
            _sweep_list(files, number)
        number += 1
    meta[SWEPT] = number
    return bool(number >= end)
