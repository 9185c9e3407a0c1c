"""Which partition a subscription lies on, and which messages it is sent (skype.txt section 7.3)."""

from streaming.distribution.catalogue import MECHANISMS, distribution_of, has_replicas, needs_reaches
from streaming.distribution.contract import Distribution, Sample

__all__ = ["MECHANISMS", "Distribution", "Sample", "distribution_of", "has_replicas", "needs_reaches"]
