"""Lower bounds on the text part of a length, from marks and nodes.

Common keywords and those of an object count as numbers, or as sums of squared weights with TFIDF. Then
the text distance is 1 - c / sqrt(S * O), with c for the common keywords, S for the subscription, O for
the object. It is least where c is as large as possible and O as small as possible, but not less than c.

Operations: `least` O(1), `least_of_mark` O(keywords).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from index.batches import Floats, Ints
from index.iqf_plus.mark_kernels import MANY, keyword_count_of, norm_code_of
from index.tables.buckets.question_kernels import Question, least_share
from index.tables.norm_kernels import norm_of_code
from safe_region.jit import leaf
from safe_region.scoring.formulas import Similarity

_TFIDF = int(Similarity.TFIDF)
_ROUNDING = 1e-12
"""Of weighted text distances, which are not rounded like their bounds."""


class Sought(NamedTuple):
    """The query of one list: the objects that no other list offers."""

    rank: int  # of the rarest common keyword
    second: int  # rank of the rarest long one after it; or ANY, or NONE
    most: float  # sum of the squared weights of the keywords that may be common
    long: Ints  # by rank, whether the keyword is long
    squares: Floats  # by rank, the keyword's squared weight; 1 without weights


@leaf
def least(question: Question, common: float, keyword_min: int, norm_min: int) -> float:
    """Return the least text part of an object under bounds on its keywords.

    The object shares no more than `common`, and has no fewer keywords and no lower code of its norm.
    """
    if question.similarity != _TFIDF:
        return least_share(question, int(common), keyword_min)
    norm = max(common, norm_of_code(norm_min))
    distance = 1.0 - common / math.sqrt(question.norm * norm)
    return question.weight_m * max(0.0, distance - _ROUNDING)


@leaf
def least_of_mark(question: Question, sought: Sought, mark: int) -> float:
    """Return the least text part of an object with a mark."""
    if question.similarity != _TFIDF:
        keyword_count = keyword_count_of(mark)
        count = int(sought.most)
        if keyword_count != MANY:
            count = min(count, keyword_count)
        if count > 1:
            seen = 0
            for rank in range(sought.rank, question.bits.shape[0]):
                seen += (mark & question.bits[rank]) != 0
            count = min(seen, count)
        return least_share(question, count, keyword_count)
    common = 0.0
    for rank in range(sought.rank, question.bits.shape[0]):
        if mark & question.bits[rank]:
            common += sought.squares[rank]
    return least(question, min(common, sought.most), 0, norm_code_of(mark))
