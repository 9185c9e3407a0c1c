"""Lists: look-up, creation, entries, and release.

A list of a shape with cells first is found by (cell, keyword) in a hash. The list of a keyword is found
by the keyword's row, or, if the keyword has a grid, by the cell in its directory. Lists of a quadtree are
four adjacent rows, the children of one.

A function that lacks space writes the missing number to `meta`, and has changed nothing.

Operations: each O(1) amortised, except `fell`, O(lists of the tree).
"""

from __future__ import annotations

from index.published.postings import layout as L
from index.published.postings.layout import Files
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.run_kernels import (
    NO_RUN,
    RUN_END,
    RUN_LEAST,
    free_run,
    has_run,
    is_wasteful,
    moved_run,
)
from safe_region.jit import leaf

NO_PLACE = -1

_ROOM_EACH = RUN_LEAST
"""Records that new lists allocate in all, at most, for each entry: their runs are the smallest, or more
than half full, and the runs from which a list has grown are shorter together."""

_LOW = 0xFFFFFFFF


@leaf
def list_key(cell: int, keyword: int) -> int:
    """Return the hash key of a keyword in a cell."""
    return (int(cell) << 32) | (int(keyword) & _LOW)


@leaf
def _is_by_word(files: Files) -> bool:
    """Return whether lists are found by their keywords."""
    return bool(files.meta[L.SHAPE] == L.LISTS_OF_GRIDS or files.meta[L.SHAPE] == L.LISTS_OF_TREES)


@leaf
def _keyword_of(files: Files, word: int) -> int:
    return L.NO_KEYWORD if word == L.ALL_WORDS else int(files.words[word]["keyword"])


@leaf
def list_at(files: Files, word: int, cell: int) -> int:
    """Return the list of a keyword in a cell, or of a keyword that has no grid; NO_LIST if none."""
    if not _is_by_word(files):
        found = find(files.list_keys, files.list_values, list_key(cell, _keyword_of(files, word)))
        return L.NO_LIST if found == NO_VALUE else found
    directory = int(files.words[word]["directory"])
    if directory == L.NO_DIRECTORY:
        return int(files.words[word]["list"])
    return int(files.directories[directory + cell])


@leaf
def has_lists(files: Files, count: int) -> bool:
    """Return whether this many lists can be created."""
    meta = files.meta
    is_one_free = count == 1 and meta[L.LIST_FREE] != L.NO_LIST
    if not is_one_free and meta[L.LIST_END] + count > files.lists.shape[0]:
        meta[L.LISTS_WANTED] = count
        return False
    if not _is_by_word(files) and meta[L.LIST_COUNT] + count > files.list_keys.shape[0] * LOAD_MAX:
        meta[L.KEYS_WANTED] = count
        return False
    return True


@leaf
def has_new_entries(files: Files, count: int) -> bool:
    """Return whether there is space for this many entries in new lists."""
    if files.entries.ends[RUN_END] + _ROOM_EACH * count > files.entries.records.shape[0]:
        files.meta[L.RECORDS_WANTED] = _ROOM_EACH * count
        return False
    return True


@leaf
def clear(files: Files, number: int) -> None:
    """Make a row an empty list."""
    row = files.lists[number]
    row["count"] = 0
    row["first_child"] = L.NO_LIST
    row["size_class"] = NO_RUN


@leaf
def make_list(files: Files, word: int, cell: int) -> int:
    """Create a list; return it, or NO_LIST if space is lacking."""
    meta = files.meta
    if not has_lists(files, 1):
        return L.NO_LIST
    number = take_rows(files.lists["start"], meta, L.LIST_FREE, meta, L.LIST_END, 1)
    meta[L.LIST_COUNT] += 1
    clear(files, number)
    row = files.lists[number]
    if not _is_by_word(files):
        row["key"] = list_key(cell, _keyword_of(files, word))
        put(files.list_keys, files.list_values, int(row["key"]), number)
    elif files.words[word]["directory"] == L.NO_DIRECTORY:
        row["key"] = -1 - word
        files.words[word]["list"] = number
    else:
        row["key"] = files.words[word]["directory"] + cell
        files.directories[row["key"]] = number
    return number


@leaf
def found_or_made(files: Files, word: int, cell: int) -> int:
    """Return the list of a keyword in a cell, created if necessary; NO_LIST if space is lacking."""
    number = list_at(files, word, cell)
    return make_list(files, word, cell) if number == L.NO_LIST else number


@leaf
def add_entry(files: Files, number: int) -> int:
    """Return the place for one more entry of a list, or NO_PLACE if space is lacking."""
    row = files.lists[number]
    size_class = int(row["size_class"])
    count = int(row["count"])
    if size_class == NO_RUN or count == RUN_LEAST << size_class:
        if not has_run(files.entries, size_class + 1):
            files.meta[L.RECORDS_WANTED] = RUN_LEAST << (size_class + 1)
            return NO_PLACE
        row["start"] = moved_run(files.entries, int(row["start"]), count, size_class, size_class + 1)
        row["size_class"] = size_class + 1
    row["count"] += 1
    files.meta[L.ENTRY_COUNT] += 1
    return int(row["start"]) + count


@leaf
def copy_entry(files: Files, place: int, number: int) -> None:
    """Copy the entry at a place into a list; the caller has verified the capacity."""
    target = add_entry(files, number)
    files.entries.records[target] = files.entries.records[place]


@leaf
def keep_entries(files: Files, number: int, count: int) -> None:
    """Truncate a list to its first entries; an empty one is freed."""
    row = files.lists[number]
    files.meta[L.ENTRY_COUNT] -= row["count"] - count
    row["count"] = count
    if count == 0:
        _give_back(files, number)
        return
    while is_wasteful(files.entries, count, int(row["size_class"])):
        size_class = int(row["size_class"])
        row["start"] = moved_run(files.entries, int(row["start"]), count, size_class, size_class - 1)
        row["size_class"] = size_class - 1


@leaf
def _give_back(files: Files, number: int) -> None:
    """Free the run of a list without entries, and the list, unless it is in a quadtree."""
    row = files.lists[number]
    if row["size_class"] != NO_RUN:
        free_run(files.entries, int(row["start"]), int(row["size_class"]))
        row["size_class"] = NO_RUN
    if files.meta[L.SHAPE] == L.LISTS_OF_TREES:
        return
    if not _is_by_word(files):
        pop(files.list_keys, files.list_values, int(row["key"]))
    elif row["key"] < 0:
        files.words[-1 - row["key"]]["list"] = L.NO_LIST
    else:
        files.directories[row["key"]] = L.NO_LIST
    _free_list(files, number)


@leaf
def _free_list(files: Files, number: int) -> None:
    give_back_rows(files.lists["start"], files.meta, L.LIST_FREE, number)
    files.meta[L.LIST_COUNT] -= 1


@leaf
def has_directory(files: Files) -> bool:
    """Return whether a grid can be created."""
    meta = files.meta
    if (
        meta[L.DIRECTORY_FREE] == L.NO_DIRECTORY
        and meta[L.DIRECTORY_END] + meta[L.SIDE] * meta[L.SIDE] > files.directories.shape[0]
    ):
        meta[L.DIRECTORIES_WANTED] = 1
        return False
    return True


@leaf
def begin_directory(files: Files, word: int) -> None:
    """Create a grid without lists for a keyword; the caller has verified the capacity."""
    meta = files.meta
    size = int(meta[L.SIDE] * meta[L.SIDE])
    directory = take_rows(files.directories, meta, L.DIRECTORY_FREE, meta, L.DIRECTORY_END, size)
    files.directories[directory : directory + size] = L.NO_LIST
    files.words[word]["directory"] = directory


@leaf
def end_directory(files: Files, word: int) -> None:
    """Free a keyword's grid, if it has one, which has no lists any more."""
    directory = int(files.words[word]["directory"])
    if directory != L.NO_DIRECTORY:
        give_back_rows(files.directories, files.meta, L.DIRECTORY_FREE, directory)
        files.words[word]["directory"] = L.NO_DIRECTORY


@leaf
def fell(files: Files, word: int) -> None:
    """Free the quadtree of a keyword, which has no entries any more."""
    meta = files.meta
    root = int(files.words[word]["list"])
    waiting = int(files.lists[root]["first_child"])
    if waiting != L.NO_LIST:
        files.lists[waiting]["key"] = L.NO_LIST
    while waiting != L.NO_LIST:
        first = waiting
        waiting = int(files.lists[first]["key"])
        for number in range(first, first + 4):
            below = int(files.lists[number]["first_child"])
            if below != L.NO_LIST:
                files.lists[below]["key"] = waiting
                waiting = below
        give_back_rows(files.lists["start"], meta, L.GROUP_FREE, first)
    _free_list(files, root)
    files.words[word]["list"] = L.NO_LIST
