"""How vectors write values: JSON, from which each value reads back to the last bit.

A double is a JSON number, the shortest one that reads back to the same double, which has at most 17
digits; infinity is the text "Infinity". A whole number of 64 bits (an id, a time, a version, an epoch)
is a text, since many JSON readers have doubles only. Messages are in the JSON mapping of Protocol
Buffers, which writes both in the same way, with the names of the fields as they are in `proto/`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

from google.protobuf import json_format


def double(value):
    """Write a double."""
    return float(value) if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}[value]


def read_double(value):
    """Read a double."""
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else float(value)


def ids(found: Iterable[int]) -> list[str]:
    """Write ids."""
    return [str(one) for one in found]


def message_json(message):
    """Write a message."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def read_message(value, kind):
    """Read a message."""
    return json_format.ParseDict(value, kind())


def lines(document) -> Iterator[str]:
    """Yield the lines of a file: one for each step, so that a difference shows the step."""
    head = {key: value for key, value in document.items() if key != "cases"}
    yield text(head)[:-1] + ', "cases": ['
    cases = document["cases"]
    for number, case in enumerate(cases, start=1):
        yield f'{{"name": {text(case["name"])}, "given": {text(case["given"])}, "steps": ['
        yield ",\n".join(map(text, case["steps"]))
        yield "]}," if number < len(cases) else "]}"
    yield "]}"


def text(value) -> str:
    """Write a value on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
