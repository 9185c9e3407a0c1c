"""The invariants of clauses in grid files, from the definitions. For tests; slow."""

from __future__ import annotations

from collections import Counter

from index.contracts import InconsistentIndexError
from index.published.grid_files.cell_kernels import cell_count, cell_in
from index.published.grid_files.clause_kernels import cells_of
from index.published.postings.invariants import Expected, check_lists, check_words
from index.published.postings.layout import NO_LIST, Files
from index.published.postings.list_kernels import list_at
from index.published.postings.word_kernels import word_of
from index.tables import SlotTable


def check_clauses(files: Files, table: SlotTable) -> None:
    """Verify every invariant.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    used = table.used()
    check_words(files, table, used)
    lists: Expected = {}
    keys: Counter[int] = Counter()
    for slot in used.tolist():
        word = int(table.rows["word"][slot])
        if files.words[word]["keyword"] not in table.keywords(slot):
            raise InconsistentIndexError(f"the key of slot {slot} is not one of its keywords")
        keys[word] += 1
        span = cells_of(files, word, slot)
        for step in range(cell_count(span)):
            number = list_at(files, word, cell_in(files, span, step))
            if number == NO_LIST:
                raise InconsistentIndexError(f"slot {slot} is missing in cells that it intersects")
            lists.setdefault(number, []).append(slot)
    for keyword in {keyword for slot in used.tolist() for keyword in table.keywords(slot).tolist()}:
        word = word_of(files, keyword)
        if files.words[word]["key_count"] != keys[word]:
            raise InconsistentIndexError(f"keyword {keyword} has a wrong count of clauses")
    _check_entries(files, lists)
    check_lists(files, set(lists))


def _check_entries(files: Files, lists: Expected) -> None:
    for number, slots in lists.items():
        row = files.lists[number]
        entries = files.entries.records[row["start"] : row["start"] + row["count"]]
        if sorted(entries["slot"].tolist()) != sorted(slots):
            raise InconsistentIndexError(f"list {number} has wrong entries")
        boxes = files.rows[entries["slot"]]
        for low, high in (("x1_m", "x2_m"), ("y1_m", "y2_m")):
            if (entries[low] > boxes[low]).any() or (entries[high] < boxes[high]).any():
                raise InconsistentIndexError(f"an entry of list {number} is smaller than its clause")
