"""The names of the mechanisms that divide subscriptions and messages among partitions."""

from __future__ import annotations

from typing import Literal, TypeAlias

Mechanism: TypeAlias = Literal[
    "hashing", "location", "keyword", "prefix", "spatial-first", "keyword-first"
]
"""`streaming.distribution` implements them."""
