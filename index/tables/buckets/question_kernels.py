"""Batches of queries to an object index, the view of a search on each of them, and its results.

`least_share` is Theorem 8 of lamps.txt for all three similarities: at i common keywords, Jaccard 1 -
i/|s|, Dice 1 - 2i/(|s|+i), set-cosine 1 - sqrt(i/|s|), each reached by an object that has no other
keywords; an object that is known to have at least m > i keywords is farther. With tf-idf it is 1 -
sqrt(c/n), c the sum of the i largest squared weights and n that of all, for lack of any bound on the
weights of an object's other keywords.

Operations: open a query O(keywords), close it O(n log n) for n kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints, KeywordIds
from index.tables.selection_kernels import drain
from safe_region.jit import array_leaf, leaf
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.kernels import norm_of, sum_of, text_distance

_TFIDF = int(Similarity.TFIDF)

_ROUNDING = 1e-12
"""Of weighted text distances, which are not rounded like their bounds."""

COUNTED_MAX = 16
"""For bounds, objects of more keywords count as objects with this many."""


class Queries(NamedTuple):
    """Interests at their positions: a row for each."""

    weight_m: Floats
    similarity: npt.NDArray[np.int8]
    keyword_offsets: Ints
    keyword_ids: KeywordIds
    x_m: Floats
    y_m: Floats
    bound_m: Floats
    squares: Floats
    """Squared weights, beside the keywords."""
    first_id: Ints


class Answered(NamedTuple):
    """The best objects of interest i go to `starts[i] : starts[i] + sizes[i]`, best first.

    The capacity for each is `starts[i + 1] - starts[i]`.
    """

    starts: Ints
    sizes: Ints
    ids: Ints
    lengths: Floats
    shares: Floats


class Scratch(NamedTuple):
    """Scratch for the values derived from a query: an element for each keyword."""

    counts: Ints
    order: Ints
    ranks: Ints
    bits: Ints
    least_m: npt.NDArray[np.float64]
    largest: Floats


class Question(NamedTuple):
    """A subscription at its position."""

    x_m: float
    y_m: float
    weight_m: float
    similarity: int
    bound_m: float
    first_id: int  # objects of smaller ids are omitted
    words: KeywordIds  # strictly increasing
    squares: Floats  # by word, its squared weight
    norm: float  # of all of them, as `text_distance` takes it
    ranks: Ints  # by word, the rank at which its postings are scanned
    bits: Ints  # of the words that the index has, by rank
    least_m: npt.NDArray[np.float64]  # `least_share` by common keywords and the object's, up to a limit


class Kept(NamedTuple):
    """The best so far, as `selection_kernels` keeps them."""

    lengths: Floats
    ids: Ints
    shares: Floats


@leaf
def _fill_least_weighted(question: Question, largest: Floats) -> None:
    """Fill `least_m` of a query of TFIDF, for the case that the largest weights are common."""
    size = question.words.shape[0]
    for i in range(size):
        j = i
        while j > 0 and largest[j - 1] < question.squares[i]:
            largest[j] = largest[j - 1]
            j -= 1
        largest[j] = question.squares[i]
    common_square = 0.0
    for common in range(size + 1):
        distance = 1.0
        if common > 0:
            common_square += largest[common - 1]
            distance = text_distance(question.similarity, common_square, question.norm, common_square)
        share = question.weight_m * max(0.0, distance - _ROUNDING)
        for count in range(COUNTED_MAX + 1):
            question.least_m[common, count] = share


@leaf
def fill_least(question: Question, largest: Floats) -> None:
    """Fill `least_m`. `largest` is scratch for one number for each word."""
    if question.similarity == _TFIDF:
        _fill_least_weighted(question, largest)
        return
    size = question.words.shape[0]
    for common in range(size + 1):
        for count in range(COUNTED_MAX + 1):
            question.least_m[common, count] = question.weight_m * text_distance(
                question.similarity, common, size, max(1, common, count)
            )


@leaf
def least_share(question: Question, common: int, keyword_min: int) -> float:
    """Return the least text part with at most `common` common and at least `keyword_min` keywords.

    After rounding, too, no text distance of such an object is less.
    """
    return float(question.least_m[common, min(keyword_min, COUNTED_MAX)])


@leaf
def share_of(question: Question, common: float, keyword_count: int, norm2: float) -> float:
    """Return the text part of an object, by the squared weights of the common and of all its keywords."""
    norm = norm_of(question.similarity, keyword_count, norm2)
    return float(question.weight_m * text_distance(question.similarity, common, question.norm, norm))


@leaf
def limit_of(question: Question, kept: Kept, size: int) -> float:
    """Return the length limit: objects of a greater length are not needed."""
    if size == kept.lengths.shape[0]:
        return float(kept.lengths[0])
    return question.bound_m


@array_leaf
def scratch_for(queries: Queries) -> Scratch:
    """Return scratch for any query of a batch."""
    most = 0
    for i in range(queries.weight_m.shape[0]):
        most = max(most, queries.keyword_offsets[i + 1] - queries.keyword_offsets[i])
    return Scratch(
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.zeros(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty((most + 1, COUNTED_MAX + 1)),
        np.empty(most),
    )


@array_leaf
def words_of(queries: Queries, i: int) -> KeywordIds:
    """Return the keywords of an interest."""
    return queries.keyword_ids[queries.keyword_offsets[i] : queries.keyword_offsets[i + 1]]


@array_leaf
def question_of(queries: Queries, i: int, known: int, scratch: Scratch) -> Question:
    """Return a query with its ranks, and the bits of `known` keywords, in the scratch."""
    words = words_of(queries, i)
    squares = queries.squares[queries.keyword_offsets[i] : queries.keyword_offsets[i + 1]]
    similarity = int(queries.similarity[i])
    question = Question(
        queries.x_m[i],
        queries.y_m[i],
        queries.weight_m[i],
        similarity,
        queries.bound_m[i],
        queries.first_id[i],
        words,
        squares,
        norm_of(similarity, words.shape[0], sum_of(squares)),
        scratch.ranks[: words.shape[0]],
        scratch.bits[:known],
        scratch.least_m,
    )
    fill_least(question, scratch.largest)
    return question


@array_leaf
def kept_of(answered: Answered, i: int) -> Kept:
    """Return the arrays for the kept objects of an interest."""
    first = answered.starts[i]
    end = answered.starts[i + 1]
    return Kept(answered.lengths[first:end], answered.ids[first:end], answered.shares[first:end])


@leaf
def close(answered: Answered, i: int, kept: Kept, size: int) -> None:
    """Write a result."""
    drain(kept.lengths, kept.ids, kept.shares, size)
    answered.sizes[i] = size
