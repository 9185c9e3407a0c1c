"""Compute constant parts of lengths: the metres that an object's keywords add for a subscription."""

from __future__ import annotations

from typing import Any, NamedTuple

from index.batches import Floats, KeywordIds
from safe_region.jit import leaf
from safe_region.scoring.formulas import Similarity
from safe_region.scoring.kernels import common_count, text_distance

Row = Any
"""One row of a table, by reference."""

_TFIDF = int(Similarity.TFIDF)


class Texts(NamedTuple):
    """The keywords of all objects and subscriptions, and their weights."""

    object_pool: KeywordIds
    pool: KeywordIds
    """Of subscriptions."""
    squares: Floats
    """Squared weights, shape (keywords, generations of weights)."""


@leaf
def _weighed_share(
    subscription: Row, words: KeywordIds, item: Row, object_words: KeywordIds, squares: Floats
) -> float:
    """Return the constant part for an object, by the weights of the subscription's last evaluation."""
    slot = subscription["index"] - 1
    norm2 = 0.0
    common = 0.0
    j = 0
    for i in range(words.shape[0]):
        square = squares[words[i], slot]
        norm2 += square
        while j < object_words.shape[0] and object_words[j] < words[i]:
            j += 1
        if j < object_words.shape[0] and object_words[j] == words[i]:
            common += square
    object_norm2 = item["norm2_0"] if slot == 0 else item["norm2_1"]
    distance = text_distance(subscription["similarity"], common, norm2, object_norm2)
    return float(subscription["weight_m"] * distance)


@leaf
def share_of(subscription: Row, item: Row, texts: Texts) -> float:
    """Return the constant part for an object and a subscription that have a common keyword."""
    start, count = subscription["keyword_start"], subscription["keyword_count"]
    object_start, object_count = item["keyword_start"], item["keyword_count"]
    words = texts.pool[start : start + count]
    object_words = texts.object_pool[object_start : object_start + object_count]
    if subscription["similarity"] == _TFIDF:
        return _weighed_share(subscription, words, item, object_words, texts.squares)
    common = common_count(words, object_words)
    distance = text_distance(subscription["similarity"], common, count, object_count)
    return float(subscription["weight_m"] * distance)
