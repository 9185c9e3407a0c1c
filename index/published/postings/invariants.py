"""The invariants of posting lists, from the definitions. For tests; slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from index.contracts import InconsistentIndexError
from index.published.postings import layout
from index.published.postings.entry_kernels import signature_in
from index.published.postings.layout import Files
from index.published.postings.list_kernels import list_at
from index.published.postings.place_kernels import stripe_of
from index.published.postings.word_kernels import word_of
from index.tables import SlotTable
from index.tables.float32_kernels import lower
from index.tables.id_map_kernels import NO_KEY
from index.tables.run_kernels import NO_RUN
from index.tables.runs import check_runs
from index.tables.slots import Slots

Expected = dict[int, list[int]]
"""Expected slots of each list."""

_CHILDREN = 4
_UPPER = 2


def check_objects(files: Files, table: SlotTable, gone: Slots) -> None:
    """Verify every invariant of objects in lists; removed ones may still have entries.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    used = table.used()
    if sorted(np.flatnonzero(files.is_gone).tolist()) != sorted(gone.tolist()):
        raise InconsistentIndexError("the marks of removed rows are wrong")
    check_words(files, table, used)
    lists: Expected = {}
    for slot in used.tolist():
        for number in _lists_of(files, table, slot):
            lists.setdefault(number, []).append(slot)
    for number, slots in lists.items():
        row = files.lists[number]
        entries = files.entries.records[row["start"] : row["start"] + row["count"]]
        extra = Counter(slots)
        extra.subtract(entries["slot"].tolist())
        if any(count and not (count > 0 and files.is_gone[slot]) for slot, count in extra.items()):
            raise InconsistentIndexError(f"list {number} has wrong entries")
    filled = {number for number in lists if files.lists[number]["size_class"] != NO_RUN}
    check_lists(files, filled)
    _check_entries(files, sorted(filled))
    if files.meta[layout.SHAPE] == layout.TREE_OF_LISTS:
        _check_cells(files, used)


def check_words(files: Files, table: SlotTable, used: Slots) -> None:
    """Verify the keywords and their counts."""
    counts = Counter(word for slot in used.tolist() for word in table.keywords(slot).tolist())
    there = files.word_keys[files.word_keys != NO_KEY].tolist()
    if sorted(there) != sorted(counts) or len(there) != files.meta[layout.WORD_COUNT]:
        raise InconsistentIndexError("the keywords are not those of the table")
    for keyword, count in counts.items():
        row = files.words[word_of(files, keyword)]
        if (row["keyword"], row["count"]) != (keyword, count):
            raise InconsistentIndexError(f"keyword {keyword} has a wrong count of rows")


def check_lists(files: Files, filled: set[int]) -> None:
    """Verify the set of lists with entries, the cover of the arena by runs, and the counts."""
    meta, end = files.meta, int(files.meta[layout.LIST_END])
    rows = files.lists[:end]
    if set(np.flatnonzero(rows["size_class"] != NO_RUN).tolist()) != filled:
        raise InconsistentIndexError("lists without entries")
    some = rows[sorted(filled)]
    if int(some["count"].sum()) != meta[layout.ENTRY_COUNT] or (some["count"] <= 0).any():
        raise InconsistentIndexError("the lists have a wrong count of entries")
    starts, classes = some["start"].tolist(), some["size_class"].tolist()
    check_runs(files.entries, zip(starts, classes, strict=True))
    singles = len(_chain(rows["start"], int(meta[layout.LIST_FREE])))
    groups = len(_chain(rows["start"], int(meta[layout.GROUP_FREE])))
    used = int(meta[layout.LIST_COUNT]) + _CHILDREN * len(_parents(files))
    if used + singles + _CHILDREN * groups != end:
        raise InconsistentIndexError("the pool of lists has a wrong count")
    is_hashed = meta[layout.SHAPE] in (layout.GRID_OF_LISTS, layout.TREE_OF_LISTS)
    hashed = int((files.list_keys != NO_KEY).sum())
    if hashed != (meta[layout.LIST_COUNT] if is_hashed else 0):
        raise InconsistentIndexError("the hash of lists has a wrong count")
    _check_directories(files)


def _chain(links: Slots, first: int) -> list[int]:
    found = []
    while first != layout.NO_LIST:
        found.append(first)
        first = int(links[first])
    return found


def _parents(files: Files) -> list[int]:
    """Return lists of quadtrees that have children."""
    if files.meta[layout.SHAPE] != layout.LISTS_OF_TREES:
        return []
    stack = [int(files.words[word]["list"]) for word in _words(files)]
    found = []
    while stack:
        number = stack.pop()
        first = int(files.lists[number]["first_child"])
        if first != layout.NO_LIST:
            found.append(number)
            stack += range(first, first + _CHILDREN)
    return found


def _words(files: Files) -> Iterable[int]:
    return (word_of(files, keyword) for keyword in files.word_keys[files.word_keys != NO_KEY].tolist())


def _check_directories(files: Files) -> None:
    size = int(files.meta[layout.SIDE]) ** 2
    used = [int(files.words[word]["directory"]) for word in _words(files)]
    used = [one for one in used if one != layout.NO_DIRECTORY]
    free = _chain(files.directories, int(files.meta[layout.DIRECTORY_FREE]))
    if sorted(used + free) != list(range(0, int(files.meta[layout.DIRECTORY_END]), size)):
        raise InconsistentIndexError("the pool of directories has a wrong count")


def _lists_of(files: Files, table: SlotTable, slot: int) -> list[int]:
    """Return the lists that contain an object, if it is not removed."""
    row = table.rows[slot]
    column, line = stripe_of(files, row["x_m"], 0), stripe_of(files, row["y_m"], 1)
    words = [word_of(files, keyword) for keyword in table.keywords(slot).tolist()]
    shape, side = int(files.meta[layout.SHAPE]), int(files.meta[layout.SIDE])
    if shape == layout.TREE_OF_LISTS:
        path = _path(files.cells, 0, column, line, side)
        places = [(word, cell) for word in words for cell in path] + [(layout.ALL_WORDS, path[-1])]
    else:
        places = [(word, line * side + column) for word in words]
    found = [list_at(files, word, cell) for word, cell in places]
    if shape == layout.LISTS_OF_TREES:
        children = files.lists["first_child"]
        found = [one for root in found for one in _path(children, root, column, line, side)]
    if layout.NO_LIST in found and not files.is_gone[slot]:
        raise InconsistentIndexError(f"slot {slot} is missing under one of its keywords")
    return [number for number in found if number != layout.NO_LIST]


def _path(children: Slots, root: int, column: int, line: int, side: int) -> list[int]:
    """Return the nodes of a quadtree that contain a place, from the root down."""
    if root == layout.NO_LIST:
        return [root]
    found = [root]
    while children[found[-1]] != layout.NO_LIST:
        side //= 2
        quarter = _UPPER * (line // side % 2) + column // side % 2
        found.append(int(children[found[-1]]) + quarter)
    return found


def _check_entries(files: Files, filled: list[int]) -> None:
    """Verify that entries have the positions and signatures of their objects."""
    if not filled:
        return
    some = files.lists[filled]
    starts, counts = some["start"].tolist(), some["count"].tolist()
    places = [
        place
        for start, count in zip(starts, counts, strict=True)
        for place in range(start, start + count)
    ]
    entries = files.entries.records[places]
    slots, which = np.unique(entries["slot"], return_inverse=True)
    for name in ("x_m", "y_m"):
        rounded = np.array([lower(one) for one in files.rows[name][slots].tolist()])
        if (entries[name] != rounded[which]).any():
            raise InconsistentIndexError("an entry has another position than its object")
    signatures = np.array([signature_in(files, int(slot)) for slot in slots])
    if (entries["signature"] != signatures[which]).any():
        raise InconsistentIndexError("an entry has another signature than its object")


def _check_cells(files: Files, used: Slots) -> None:
    """Verify that cells with many objects are divided, if the objects can be divided."""
    deep = int(files.meta[layout.SIDE]).bit_length() - 1
    for slot in used.tolist():
        row = files.rows[slot]
        places = (stripe_of(files, row["x_m"], 0), stripe_of(files, row["y_m"], 1))
        path = _path(files.cells, 0, *places, int(files.meta[layout.SIDE]))
        number = list_at(files, layout.ALL_WORDS, path[-1])
        if number == layout.NO_LIST:
            continue
        if files.lists[number]["count"] > files.meta[layout.LONG] and len(path) <= deep:
            raise InconsistentIndexError(f"cell {path[-1]} should have been partitioned")
