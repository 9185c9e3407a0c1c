"""How little text share objects have at least of which marks and nodes tell something.

What is common, and what an object has, are numbers of keywords, and sums of squared weights with TFIDF:
then the text distance is 1 - c / sqrt(S * O), c of what is common, S of the subscription, O of the
object. It is least where c is as large as it may be and O as small, which is no less than c.

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
from safe_region.scoring import Similarity

_TFIDF = int(Similarity.TFIDF)
_ROUNDING = 1e-12
"""Of text distances of weights, which are not rounded as their bounds are."""


class Sought(NamedTuple):
    """What is looked for in a list: objects that nothing else offers."""

    rank: int  # of the rarest common keyword
    second: int  # rank of the rarest long one behind it; or ANY, or NONE
    most: float  # sum of the squared weights of what may be common
    long: Ints  # of each rank, whether its keyword is long
    squares: Floats  # of each rank, its keyword's squared weight; 1 where keywords count alike


@leaf
def least(question: Question, common: float, keyword_min: int, norm_min: int) -> float:
    """Least text share of an object with no more in common, no fewer keywords and no lower code."""
    if question.similarity != _TFIDF:
        return least_share(question, int(common), keyword_min)
    norm = max(common, norm_of_code(norm_min))
    distance = 1.0 - common / math.sqrt(question.norm * norm)
    return question.weight_m * max(0.0, distance - _ROUNDING)


@leaf
def least_of_mark(question: Question, sought: Sought, mark: int) -> float:
    """Least text share of an object with a mark."""
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
