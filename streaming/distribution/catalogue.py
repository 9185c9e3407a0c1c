"""The mechanisms of distribution, by the names that the job and the benchmark use."""

from __future__ import annotations

from typing import Any

from streaming.distribution.contract import Distribution
from streaming.distribution.hashing import Hashing
from streaming.distribution.keywords import Keyword, KeywordFirst, Prefix, Replicated, SpatialFirst
from streaming.distribution.location import Location

MECHANISMS: dict[str, type[Distribution]] = {
    "hashing": Hashing,
    "location": Location,
    "keyword": Keyword,
    "prefix": Prefix,
    "spatial-first": SpatialFirst,
    "keyword-first": KeywordFirst,
}


def has_replicas(mechanism: str) -> bool:
    """Whether subscriptions have replicas; then all of them are top-k ones."""
    return issubclass(MECHANISMS[mechanism], Replicated)


def needs_sample(mechanism: str) -> bool:
    """Whether the division depends on the rows of the feeds."""
    return MECHANISMS[mechanism] is not Hashing


def needs_reaches(mechanism: str) -> bool:
    """Whether subscriptions are placed by their loose prefixes, which follow from their reaches."""
    found = MECHANISMS[mechanism]
    return issubclass(found, Replicated) and found.uses_prefix


def distribution_of(mechanism: str, partitions: int, kept: Any) -> Distribution:  # noqa: ANN401
    """Return the distribution from its encoded form."""
    return MECHANISMS[mechanism].decoded(partitions, kept)
