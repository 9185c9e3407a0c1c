"""Subscriptions as in the experiments of papers, by name. Sizes are different.

Parameters that a paper does not give have their defaults. Each preset cites the source of its values. If
a table marks defaults in a way that the available text has lost, a value is one of its range.
"""

from __future__ import annotations

from typing import Any

from nearcast.limits import DEFAULT_LIMITS

_WORDS = {"subscription_keywords_min": 1, "subscription_keywords_max": 5}
_FOREVER = {"retracted_share": 0.0, "replaced_share": 0.0}
_LONG_S = 31_536_000.0
_BOOLEAN = {
    **_WORDS,
    "boolean_share": 1.0,
    "window_share": 0.0,
    "either_share": 0.0,
    "excluding_share": 0.0,
}

PRESETS: dict[str, dict[str, Any]] = {
    # Lamps, section 7.1, subscription workload: l in 1..5, alpha in (0, 1), k in 1..10, Jaccard.
    # All devices move, with a position a second.
    "lamps": {
        **_WORDS,
        **_FOREVER,
        "boolean_share": 0.0,
        "stationary_share": 0.0,
        "window_share": 0.0,
        "tfidf_share": 0.0,
        "similarity": "jaccard",
        "alpha_min": DEFAULT_LIMITS.alpha_min,
        "alpha_max": DEFAULT_LIMITS.alpha_max,
        "k_min": 1,
        "k_max": 10,
        "mobility": 1.0,
        "period_ms": 1_000,
    },
    # AP-Tree, section 5.1.1, subscription workload: 1 to 5 keywords, a rectangle about the message of
    # 0.01 to 1 % of the space. Subscriptions stay.
    "ap-tree": {
        **_BOOLEAN,
        "moving_share": 0.0,
        "fixed_rectangle_share": 1.0,
        "range_area_min": 0.0001,
        "range_area_max": 0.01,
    },
    # AP+-Tree, section 5.2.1 and Table 3: ranges about points of a network-based generator, mobility 20 %
    # and area 0.01 % of those in the table, medium velocity; a timestamp is 30 s, messages live for 10.
    "ap-plus": {
        **_BOOLEAN,
        **_FOREVER,
        "moving_share": 1.0,
        "moving_rectangle_share": 1.0,
        "range_area_min": 0.0001,
        "range_area_max": 0.0001,
        "mobility": 0.2,
        "velocity": 1.0,
        "period_ms": 30_000,
        "ttl_s_mean": 300.0,
    },
    # Skype, section 8.1.1, subscription and message workload: 1 to 5 keywords by tf-idf, alpha in (0, 1),
    # k 20, at the place of the message; a window of the last million, which no message leaves early.
    "skype": {
        **_WORDS,
        **_FOREVER,
        "boolean_share": 0.0,
        "stationary_share": 1.0,
        "tfidf_share": 1.0,
        "alpha_min": DEFAULT_LIMITS.alpha_min,
        "alpha_max": DEFAULT_LIMITS.alpha_max,
        "k_min": 20,
        "k_max": 20,
        "window_share": 1.0,
        "window_count": 1_000_000,
        "ttl_s_mean": _LONG_S,
        "ttl_s_min": _LONG_S,
        "ttl_s_max": _LONG_S,
    },
    # R^t-tree, section 6 and Table 1: 1 to 5 tokens, 3 in the mean, and a rectangle about a point of
    # interest, of random width and height.
    "rt-tree": {
        **_BOOLEAN,
        "moving_share": 0.0,
        "fixed_rectangle_share": 1.0,
        "range_aspect_max": 4.0,
    },
}
"""Parameters by name, of objects, subscriptions and movement."""

_PAIRS = (
    ("subscription_keywords_min", "subscription_keywords_max"),
    ("k_min", "k_max"),
    ("alpha_min", "alpha_max"),
    ("range_area_min", "range_area_max"),
    ("ttl_s_min", "ttl_s_max"),
)
_WINDOWS = frozenset({"window_s", "window_count"})


def preset_beside(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a preset that are not given and do not contradict the given ones.

    If one of two limits is given, the other limit of the preset is adjusted to it; a given window
    replaces that of the preset.
    """
    found = {key: value for key, value in PRESETS[name].items() if key not in given}
    if _WINDOWS & given.keys():
        found = {key: value for key, value in found.items() if key not in _WINDOWS}
    for low, high in _PAIRS:
        if low in found and _is_number(limit := given.get(high)):
            found[low] = min(found[low], limit)
        if high in found and _is_number(limit := given.get(low)):
            found[high] = max(found[high], limit)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
