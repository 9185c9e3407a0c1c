"""Loops of the inverted file: posting lists that grow, and counting over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Ints, KeywordIds
from index.naive.kernels import Rows
from index.tables.buckets.question_kernels import (
    Answered,
    Kept,
    Queries,
    Question,
    close,
    kept_of,
    question_of,
    scratch_for,
    share_of,
)
from index.tables.id_map_kernels import NO_VALUE, Values, find
from index.tables.selection_kernels import offer
from index.tables.slots import Slots
from index.tables.within_kernels import BoxQueries, Wanted, is_wanted, wanted_of
from index.tables.within_kernels import keep as keep_id
from safe_region.jit import kernel, leaf
from safe_region.scoring.kernels import length

Commons = npt.NDArray[np.float64]

LIST_DTYPE = np.dtype(
    [
        ("start", np.int64),  # first posting
        ("count", np.int32),  # postings in use
        ("room", np.int32),  # allocated postings
    ],
    align=True,
)


class File(NamedTuple):
    """The arrays: keyword to list, the lists, their postings, and the objects of the postings."""

    keys: Ints
    numbers: Values
    lists: npt.NDArray[Any]
    postings: Slots
    objects: Rows
    pool: KeywordIds
    places: Slots
    """For each keyword of the pool, the position of the object's posting in the keyword's list."""


@kernel
def widen(lists: Rows, postings: Slots, numbers: Ints, rooms: Ints, end: int) -> int:
    """Move lists with larger capacities behind the others; return the new end."""
    for i in range(numbers.shape[0]):
        one = numbers[i]
        start = lists[one]["start"]
        for j in range(lists[one]["count"]):
            postings[end + j] = postings[start + j]
        lists[one]["start"] = end
        lists[one]["room"] = rooms[i]
        end += rooms[i]
    return end


@kernel
def pack(lists: Rows, postings: Slots, packed: Slots) -> int:
    """Copy the lists without the gaps between them; return their total capacity."""
    end = 0
    for one in range(lists.shape[0]):
        start = lists[one]["start"]
        for j in range(lists[one]["count"]):
            packed[end + j] = postings[start + j]
        lists[one]["start"] = end
        end += lists[one]["room"]
    return end


@kernel
def enter(file: File, slots: Slots) -> None:
    """Append objects to the lists of their keywords, which exist and have capacity."""
    for slot in slots:
        start = file.objects[slot]["keyword_start"]
        for i in range(start, start + file.objects[slot]["keyword_count"]):
            one = find(file.keys, file.numbers, int(file.pool[i]))
            place = file.lists[one]["count"]
            file.postings[file.lists[one]["start"] + place] = slot
            file.places[i] = place
            file.lists[one]["count"] = place + 1


@kernel
def leave(file: File, slots: Slots) -> None:
    """Remove objects from their lists; the last posting of a list fills the gap."""
    for slot in slots:
        start = file.objects[slot]["keyword_start"]
        for i in range(start, start + file.objects[slot]["keyword_count"]):
            word = file.pool[i]
            one = find(file.keys, file.numbers, int(word))
            first = file.lists[one]["start"]
            last = file.lists[one]["count"] - 1
            other = file.postings[first + last]
            file.postings[first + file.places[i]] = other
            theirs = file.objects[other]["keyword_start"]
            while file.pool[theirs] != word:
                theirs += 1
            file.places[theirs] = file.places[i]
            file.lists[one]["count"] = last


@leaf
def count(file: File, question: Question, common: Commons, touched: Slots) -> int:
    """Add the squared weights of the words that each object has; return the number with any."""
    touched_count = 0
    for i in range(question.words.shape[0]):
        one = find(file.keys, file.numbers, int(question.words[i]))
        if one == NO_VALUE:
            continue
        first = file.lists[one]["start"]
        for j in range(first, first + file.lists[one]["count"]):
            slot = file.postings[j]
            if common[slot] == 0.0:
                touched[touched_count] = slot
                touched_count += 1
            common[slot] += question.squares[i]
    return touched_count


@leaf
def keep(file: File, question: Question, kept: Kept, common: Commons, touched: Slots) -> int:
    """Keep the best of the objects that were touched; return their number."""
    size = 0
    for slot in touched:
        row = file.objects[slot]
        share = share_of(question, common[slot], row["keyword_count"], row["norm2"])
        common[slot] = 0.0
        if row["id"] < question.first_id:
            continue
        here = length(question.x_m - row["x_m"], question.y_m - row["y_m"], share)
        if here <= question.bound_m:
            size = offer(kept.lengths, kept.ids, kept.shares, size, here, row["id"], share)
    return size


@kernel
def best(file: File, queries: Queries, answered: Answered, common: Commons, touched: Slots) -> None:
    """Answer a batch of queries.

    Parameters
    ----------
    file
        The inverted file.
    queries
        The batch.
    answered
        Receives the results.
    common
        A zero for each object, and zero again afterwards.
    touched
        Capacity for every object.
    """
    scratch = scratch_for(queries)
    for i in range(answered.sizes.shape[0]):
        question = question_of(queries, i, 0, scratch)
        touched_count = count(file, question, common, touched)
        kept = kept_of(answered, i)
        size = keep(file, question, kept, common, touched[:touched_count])
        close(answered, i, kept, size)


@leaf
def _rarest(file: File, wanted: Wanted) -> int:
    """Return the shortest list of the required keywords; NO_VALUE if one has none."""
    best = NO_VALUE
    for word in wanted.words:
        one = find(file.keys, file.numbers, int(word))
        if one == NO_VALUE:
            return NO_VALUE
        if best == NO_VALUE or file.lists[one]["count"] < file.lists[best]["count"]:
            best = one
    return best


@kernel
def within(file: File, queries: BoxQueries, first_row: int, offsets: Ints, found: Ints) -> int:
    """Answer rows from one on; return the first that lacked capacity (see `index.tables.matches`)."""
    for i in range(first_row, queries.x1_m.shape[0]):
        total = int(offsets[i])
        wanted = wanted_of(queries, i)
        one = _rarest(file, wanted)
        if one != NO_VALUE:
            first = file.lists[one]["start"]
            for place in range(first, first + file.lists[one]["count"]):
                row = file.objects[file.postings[place]]
                if is_wanted(wanted, row, file.pool):
                    total = keep_id(found, total, row["id"])
        offsets[i + 1] = total
        if total > found.shape[0]:
            return i
    return int(queries.x1_m.shape[0])
