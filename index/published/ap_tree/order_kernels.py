"""The frozen order of keywords: codes, of which cuts are intervals.

Codes are 0, 1, ... in the order. A later keyword is appended after all known ones.
"""

from __future__ import annotations

from index.batches import KeywordIds
from index.published.ap_tree.layout import NOTHING, Numbers, Tree
from safe_region.jit import leaf


@leaf
def code_of(order: Numbers, keyword: int) -> int:
    """Return the code of a keyword, NOTHING if no clause ever had it."""
    place = keyword + 1
    if place >= order.shape[0]:
        return NOTHING
    return int(order[place]) - 1


@leaf
def enrol(order: Numbers, keyword: int) -> None:
    """Append a keyword to the order, if it is not in it."""
    if order[keyword + 1] == 0:
        order[0] += 1
        order[keyword + 1] = order[0]


@leaf
def write_codes(order: Numbers, words: KeywordIds, codes: Numbers) -> int:
    """Write the codes of keywords that have one, increasing; return their number. O(keywords^2)."""
    count = 0
    for i in range(words.shape[0]):
        code = code_of(order, words[i])
        if code == NOTHING:
            continue
        place = count
        while place > 0 and codes[place - 1] > code:
            codes[place] = codes[place - 1]
            place -= 1
        codes[place] = code
        count += 1
    return count


@leaf
def clause_codes(tree: Tree, order: Numbers, slot: int) -> int:
    """Write the codes of a clause to `tree.codes`; return their number."""
    start = int(tree.clauses[slot]["keyword_start"])
    end = start + int(tree.clauses[slot]["keyword_count"])
    return write_codes(order, tree.pool[start:end], tree.codes)
