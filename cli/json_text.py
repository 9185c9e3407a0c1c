"""JSON that the commands print."""

from __future__ import annotations

import json
import math
from typing import Any


def json_text(value: Any) -> str:  # noqa: ANN401 - whatever JSON has
    """Return a value as JSON.

    JSON has no infinite numbers and no NaN. They become the texts "Infinity", "-Infinity" and "NaN", as
    in the JSON of Protocol Buffers.
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0.0 else "-Infinity"
