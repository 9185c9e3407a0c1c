"""Specs of another instance: which ones a device knows, and which are the same as its own."""

from __future__ import annotations

from itertools import combinations

_TEA = {"keywords": ["tea"], "k": 2, "alpha": 0.5}
_CLAUSES = [{"required": ["tea"], "excluded": ["milk"]}]
_CIRCLE = {"clauses": _CLAUSES, "circle": {"radius_m": 500.0}, "moving": True}
_BOUNDS = {"lon_min": 14.0, "lat_min": 35.0, "lon_max": 14.5, "lat_max": 35.5}
_RING = {"vertices": [{"lon": 14.0, "lat": 35.0}, {"lon": 14.5, "lat": 35.0}, {"lon": 14.2, "lat": 35.5}]}

_KNOWN = (
    {"top_k": _TEA},
    {"top_k": {**_TEA, "similarity": "SIMILARITY_TFIDF"}, "region": "REGION_MODE_STATIONARY"},
    {"top_k": _TEA, "window": {"duration_ms": "600000"}},
    {"boolean": _CIRCLE},
    {"boolean": {**_CIRCLE, "dwell_ms": "2007"}, "region": "REGION_MODE_NEAREST"},
    {"boolean": {"clauses": _CLAUSES, "rectangle": {"bounds": _BOUNDS}}},
    {"boolean": {"clauses": _CLAUSES, "rectangle": {"width_m": 5.0, "height_m": 6.0}, "moving": True}},
    {"boolean": {"clauses": _CLAUSES, "polygon": {"outer": _RING}}},
)
_UNKNOWN = (
    {},
    {"window": {"count": "5"}},
    {"top_k": _TEA, "window": {}},
    {"top_k": {**_TEA, "similarity": 9}},
    {"top_k": _TEA, "region": 9},
    {"boolean": {"clauses": _CLAUSES, "moving": True}},
    {"boolean": _CIRCLE, "region": "REGION_MODE_ELLIPSE"},
    {"boolean": {"clauses": _CLAUSES, "rectangle": {"bounds": _BOUNDS}, "moving": True}},
    {"boolean": {"clauses": _CLAUSES, "rectangle": {"width_m": 5.0, "height_m": 6.0}}},
    {"boolean": {"clauses": _CLAUSES, "polygon": {"outer": _RING}, "moving": True}},
)
_COMPARED = (
    {"top_k": _TEA},
    {"top_k": {**_TEA, "keywords": ["Tea "]}},
    {"top_k": {**_TEA, "keywords": ["tea", "TEA"], "similarity": "SIMILARITY_JACCARD"}},
    {"top_k": _TEA, "region": "REGION_MODE_ANCHORED"},
    {"top_k": {**_TEA, "k": 3}},
    {"top_k": {**_TEA, "distance_scale_m": 1000.0}},
    {"top_k": _TEA, "window": {"count": "5"}},
    {"top_k": _TEA, "window": {"duration_ms": "5"}},
    {"boolean": _CIRCLE},
    {"boolean": {**_CIRCLE, "clauses": [{"required": ["TEA"], "excluded": ["Milk"]}]}},
    {"boolean": {**_CIRCLE, "clauses": [*_CLAUSES, {"required": ["tea", "cup"], "excluded": ["milk"]}]}},
    {"boolean": {**_CIRCLE, "clauses": [*_CLAUSES, {"required": ["cup"]}]}},
    {"boolean": {**_CIRCLE, "clauses": [{"required": ["cup"]}, *_CLAUSES]}},
    {"boolean": {**_CIRCLE, "circle": {"radius_m": 500.5}}},
    {"boolean": {**_CIRCLE, "dwell_ms": "1"}},
)


def cases():
    steps = [{"op": "read", "spec": one} for one in (*_KNOWN, *_UNKNOWN)]
    yield {"name": "known and unknown", "given": {}, "steps": steps}
    steps = [{"op": "compare", "one": one, "other": other} for one, other in combinations(_COMPARED, 2)]
    yield {"name": "the same or not", "given": {}, "steps": steps}
