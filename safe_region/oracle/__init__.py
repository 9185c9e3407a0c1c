"""Results from the definition, in plain Python: `results`, and the geometry that they need, `plane`."""

from safe_region.oracle.plane import OracleCircle, OracleExtent, OraclePolygon, OracleRectangle
from safe_region.oracle.results import (
    OracleClause,
    OracleMatch,
    OracleObject,
    OracleRange,
    OracleSubscription,
    OracleWindow,
    does_count,
    dwelling,
    has_clause,
    is_alive,
    matching,
    ranked,
    score,
    text_distance,
    tfidf_distance,
    top_k,
)

__all__ = [
    "OracleCircle",
    "OracleClause",
    "OracleExtent",
    "OracleMatch",
    "OracleObject",
    "OraclePolygon",
    "OracleRange",
    "OracleRectangle",
    "OracleSubscription",
    "OracleWindow",
    "does_count",
    "dwelling",
    "has_clause",
    "is_alive",
    "matching",
    "ranked",
    "score",
    "text_distance",
    "tfidf_distance",
    "top_k",
]
