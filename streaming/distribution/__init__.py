"""Distribution: the partition of each subscription, and the messages it receives (skype.txt 7.3)."""

from streaming.distribution.catalogue import (
    MECHANISMS,
    distribution_of,
    has_replicas,
    needs_reaches,
    needs_sample,
)
from streaming.distribution.contract import Distribution, Sample

__all__ = [
    "MECHANISMS",
    "Distribution",
    "Sample",
    "distribution_of",
    "has_replicas",
    "needs_reaches",
    "needs_sample",
]
