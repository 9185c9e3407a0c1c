"""Keywords, and the number of rows of the table that have them.

Operations: each O(1) a keyword expected.
"""

from __future__ import annotations

from index.batches import Ints, KeywordIds
from index.published.postings import layout as L
from index.published.postings.layout import Files
from index.published.postings.list_kernels import end_directory, fell
from index.tables.free_kernels import give_back_rows, take_rows
from index.tables.id_map_kernels import LOAD_MAX, NO_VALUE, find, pop, put
from index.tables.slots import Slots
from safe_region.jit import kernel, leaf


@leaf
def word_of(files: Files, keyword: int) -> int:
    """Return the row of a keyword, NO_WORD if no row of the table has it."""
    found = find(files.word_keys, files.word_values, keyword)
    return L.NO_WORD if found == NO_VALUE else found


@leaf
def _count_word(files: Files, keyword: int) -> bool:
    """Count a row of the table that has a keyword; return whether there was space."""
    meta = files.meta
    word = word_of(files, keyword)
    if word == L.NO_WORD:
        if meta[L.WORD_COUNT] + 1 > files.word_keys.shape[0] * LOAD_MAX:
            meta[L.WORD_KEYS_WANTED] = 1
            return False
        if meta[L.WORD_FREE] == L.NO_WORD and meta[L.WORD_END] >= files.words.shape[0]:
            meta[L.WORDS_WANTED] = 1
            return False
        word = take_rows(files.words["list"], meta, L.WORD_FREE, meta, L.WORD_END, 1)
        meta[L.WORD_COUNT] += 1
        row = files.words[word]
        row["keyword"] = keyword
        row["count"] = 0
        row["key_count"] = 0
        row["list"] = L.NO_LIST
        row["directory"] = L.NO_DIRECTORY
        put(files.word_keys, files.word_values, keyword, word)
    files.words[word]["count"] += 1
    return True


@kernel
def count_words(files: Files, slots: Slots, cursor: Ints) -> bool:
    """Count the keywords of rows of the table; return whether all are done."""
    for i in range(cursor[L.ROW], slots.shape[0]):
        row = files.rows[slots[i]]
        while cursor[L.STEP] < row["keyword_count"]:
            if not _count_word(files, int(files.pool[row["keyword_start"] + cursor[L.STEP]])):
                cursor[L.ROW] = i
                return False
            cursor[L.STEP] += 1
        cursor[L.STEP] = 0
    return True


@leaf
def _forget_word(files: Files, word: int) -> None:
    """Free a keyword that no row of the table has, and that has no entries."""
    row = files.words[word]
    end_directory(files, word)
    if files.meta[L.SHAPE] == L.LISTS_OF_TREES and row["list"] != L.NO_LIST:
        fell(files, word)
    pop(files.word_keys, files.word_values, int(row["keyword"]))
    row["keyword"] = L.NO_KEYWORD
    give_back_rows(files.words["list"], files.meta, L.WORD_FREE, word)
    files.meta[L.WORD_COUNT] -= 1


@kernel
def release_words(files: Files, slots: Slots) -> None:
    """Discount the keywords of rows of the table that have no entries left."""
    for slot in slots:
        row = files.rows[slot]
        start = int(row["keyword_start"])
        for i in range(start, start + int(row["keyword_count"])):
            word = word_of(files, int(files.pool[i]))
            files.words[word]["count"] -= 1
            if files.words[word]["count"] == 0:
                _forget_word(files, word)


@leaf
def least_frequent(files: Files, keywords: KeywordIds) -> int:
    """Return the row of the keyword that the fewest rows have, the first of several.

    NO_WORD if some keyword is absent, or there are none.
    """
    best = L.NO_WORD
    for keyword in keywords:
        word = word_of(files, int(keyword))
        if word == L.NO_WORD:
            return L.NO_WORD
        if best == L.NO_WORD or files.words[word]["count"] < files.words[best]["count"]:
            best = word
    return best
