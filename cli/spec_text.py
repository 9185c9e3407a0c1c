"""Format the spec of a subscription for people, from the fields of a `SubscriptionSpec`."""

from __future__ import annotations

import math
import re
from typing import Any

_PLAIN = re.compile(r'[^\s()"]+')
_OPERATORS = {"AND", "OR", "NOT"}

_MODES = {
    "ELLIPSE": "ELLIPSE: the device holds its result only",
    "NEAREST": "NEAREST: the device holds its result only",
    "STATIONARY": "STATIONARY: for a device that does not move",
}


def spec_lines(spec: dict[str, Any]) -> list[str]:
    """Return lines about the spec of a subscription."""
    if "top_k" in spec:
        lines = _top_k_lines(spec["top_k"])
    elif "boolean" in spec:
        lines = _boolean_lines(spec["boolean"])
    else:
        return ["of an unknown kind: --json shows all fields"]
    if "window" in spec:
        lines.append(_window_line(spec["window"]))
    mode = spec["region"].removeprefix("REGION_MODE_")
    if mode in _MODES:
        lines.append(f"region mode {_MODES[mode]}")
    return lines


def kind_text(spec: dict[str, Any]) -> str:
    """Return the name of the kind of a subscription."""
    return "top-k" if "top_k" in spec else "boolean" if "boolean" in spec else "of an unknown kind"


def place_text(position: dict[str, float]) -> str:
    """Format a position in degrees, to a decimetre."""
    return f"lon {position['lon']:.6f}, lat {position['lat']:.6f}"


def length_text(length_m: float) -> str:
    """Format a length in metres."""
    return f"{length_m:,.1f} m"


def keyword_text(keyword: str) -> str:
    """Format a keyword as in an expression."""
    if _PLAIN.fullmatch(keyword) and keyword not in _OPERATORS:
        return keyword
    escaped = keyword.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _top_k_lines(spec: dict[str, Any]) -> list[str]:
    words = ", ".join(map(keyword_text, spec["keywords"]))
    scale_m = spec["distance_scale_m"]
    scale = length_text(scale_m) if scale_m else "the diagonal of the service area"
    similarity = spec["similarity"].removeprefix("SIMILARITY_").lower()
    return [
        f"the {spec['k']} best objects with any of the keywords: {words}",
        f"alpha {spec['alpha']:g}, similarity {similarity}, distance scale {scale}",
    ]


def _boolean_lines(spec: dict[str, Any]) -> list[str]:
    lines = [f"all objects that match: {_expression(spec['clauses'])}", _range_line(spec)]
    if spec["dwell_ms"]:
        lines.append(f"after they have matched for {spec['dwell_ms'] / 1000:g} s")
    return lines


def _expression(clauses: list[dict[str, Any]]) -> str:
    """Format clauses as an expression that the SDK can parse."""
    if len(clauses) == 1:
        return _clause(clauses[0])
    return " OR ".join(_parenthesised(one) for one in clauses)


def _parenthesised(clause: dict[str, Any]) -> str:
    is_single = len(clause["required"]) + len(clause["excluded"]) == 1
    return _clause(clause) if is_single else f"({_clause(clause)})"


def _clause(clause: dict[str, Any]) -> str:
    parts = [keyword_text(one) for one in clause["required"]]
    return " AND ".join(parts + [f"NOT {keyword_text(one)}" for one in clause["excluded"]])


def _range_line(spec: dict[str, Any]) -> str:
    return f"range: {_range(spec)}, {'moves with the device' if spec['moving'] else 'fixed in place'}"


def _range(spec: dict[str, Any]) -> str:
    if "circle" in spec:
        circle = spec["circle"]
        around = f" around {place_text(circle['center'])}" if "center" in circle else ""
        return f"{length_text(circle['radius_m'])}{around}"
    if "polygon" in spec:
        polygon = spec["polygon"]
        holes = f" and {len(polygon['holes'])} holes" if polygon["holes"] else ""
        return f"a polygon of {len(polygon['outer']['vertices'])} vertices{holes}"
    return _rectangle(spec["rectangle"])


def _rectangle(rectangle: dict[str, Any]) -> str:
    if "bounds" not in rectangle:
        return f"{length_text(rectangle['width_m'])} wide, {length_text(rectangle['height_m'])} high"
    bounds = rectangle["bounds"]
    return (
        f"lon {bounds['lon_min']:.6f} to {bounds['lon_max']:.6f}, "
        f"lat {bounds['lat_min']:.6f} to {bounds['lat_max']:.6f}"
    )


def _window_line(window: dict[str, Any]) -> str:
    if "duration_ms" in window:
        return f"window: objects of the last {window['duration_ms'] / 1000:g} s"
    return f"window: the last {window['count']:,} objects published"


def anchor_line(found: dict[str, Any]) -> str:
    """Return a line about the position where a subscription was evaluated."""
    boolean = found["spec"].get("boolean")
    is_fixed = boolean is not None and not boolean["moving"]
    what = "the middle of its range" if is_fixed else "the position of its last evaluation"
    return f"anchor {place_text(found['anchor_position'])}: {what}"


def bound_line(found: dict[str, Any]) -> str | None:
    """Return a line about the bound of the buffer; None if there is no such bound, or it is unknown."""
    if "reach" in found and found["spec"]["region"] != "REGION_MODE_STATIONARY":
        return _reach_text(found["reach"]["length_m"])
    return _slack_text(found["slack"]) if "slack" in found else None


def _reach_text(length_m: float) -> str:
    if math.isinf(length_m):
        return "reach: without a bound, the device holds every object that has one of the keywords"
    return f"reach {length_text(length_m)}: no object that the device does not hold has a shorter length"


def _slack_text(slack: dict[str, Any]) -> str:
    if slack["too_many"]:
        return "slack: none, there are TOO MANY matches, and the device holds the nearest"
    if math.isinf(slack["slack_m"]):
        return "slack: without a bound, the device holds every match wherever it is"
    beyond = length_text(slack["slack_m"])
    return f"slack {beyond}: the device holds every match up to this distance beyond its range"
