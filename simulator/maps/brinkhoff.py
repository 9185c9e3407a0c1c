"""Networks of Brinkhoff's network-based generator: `.node` and `.edge` files.

There are two forms, distinguished by their contents: text has no zero bytes, 8-byte integers have.

Binary, all numbers big-endian. A node: the length of its name (one byte), the name, id (8 bytes), x, y
(4 bytes each). An edge: its two nodes (8 bytes each), the length of its name (one byte), the name, id
(8 bytes), class (4 bytes).

Text, one item a line, fields separated by blanks. A node: id, x, y, and optionally a name. An edge: id,
its two nodes, optionally its length in the unit of the coordinates, class, and optionally a name. The
first line decides whether there are lengths: if so, its fifth field is a class.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from simulator.maps.errors import MapError
from simulator.maps.files import content_of, text_of
from simulator.maps.roads import SPEED_MPS_MIN, Lane
from simulator.maps.rows import Row
from simulator.network.traffic import SPEEDS_MPS, RoadClass

LANES = (
    *(
        Lane(one, SPEEDS_MPS[one])
        for one in (
            RoadClass.MOTORWAY,
            RoadClass.PRIMARY,
            RoadClass.SECONDARY,
            RoadClass.TERTIARY,
            RoadClass.RESIDENTIAL,
            RoadClass.SERVICE,
        )
    ),
    Lane(RoadClass.SERVICE, SPEED_MPS_MIN),
)
"""By class of edge. The generator's own speeds are 140, 70, 50, 40, 20, 20 and 5, without a unit. The
last class is not a footway: in the generator every object may use every edge.
"""

CLASS_MAX = len(LANES) - 1

_NODE_TAIL = struct.Struct(">qii")
_EDGE_HEAD = struct.Struct(">qq")
_EDGE_TAIL = struct.Struct(">qi")
_NODE_NAMES = ("id", "x", "y")
_EDGE_NAMES = ("id", "source", "target", "class")
_LONG_EDGE_NAMES = ("id", "source", "target", "length", "class")


def node_rows(path: Path) -> Iterator[Row]:
    """Yield the nodes of a `.node` file: id, x, y.

    Raises
    ------
    MapError
        If the file is truncated or cannot be read.
    """
    content = content_of(path)
    if b"\0" in content:
        return _binary_nodes(path, content)
    return _text_rows(path, _NODE_NAMES)


def edge_rows(path: Path) -> Iterator[Row]:
    """Yield the edges of an `.edge` file: id, source, target, class, and length if lines have it.

    Raises
    ------
    MapError
        If the file is truncated or cannot be read.
    """
    content = content_of(path)
    if b"\0" in content:
        return _binary_edges(path, content)
    first = content[: content.find(b"\n") if b"\n" in content else None].split()
    has_length = len(first) >= len(_LONG_EDGE_NAMES) and _is_class(first[len(_LONG_EDGE_NAMES) - 1])
    return _text_rows(path, _LONG_EDGE_NAMES if has_length else _EDGE_NAMES)


def _is_class(field: bytes) -> bool:
    return field.isdigit() and int(field) <= CLASS_MAX


def _text_rows(path: Path, names: Sequence[str]) -> Iterator[Row]:
    for line, text in enumerate(text_of(path).split("\n"), 1):
        values = text.split()
        if not values:
            continue
        if len(values) < len(names):
            raise MapError(
                f"{path}, line {line}: {len(values)} fields, must be {len(names)} or more: "
                f"{', '.join(names)}"
            )
        yield Row(path, line, dict(zip(names, values, strict=False)))


def _binary_nodes(path: Path, content: bytes) -> Iterator[Row]:
    place = 0
    record = 0
    while place < len(content):
        record += 1
        place = _after_name(path, content, place, record)
        values = _unpacked(path, content, place, record, _NODE_TAIL)
        place += _NODE_TAIL.size
        yield Row(path, record, dict(zip(_NODE_NAMES, map(str, values), strict=True)), "record")


def _binary_edges(path: Path, content: bytes) -> Iterator[Row]:
    place = 0
    record = 0
    while place < len(content):
        record += 1
        ends = _unpacked(path, content, place, record, _EDGE_HEAD)
        place = _after_name(path, content, place + _EDGE_HEAD.size, record)
        number, edge_class = _unpacked(path, content, place, record, _EDGE_TAIL)
        place += _EDGE_TAIL.size
        values = map(str, (number, *ends, edge_class))
        yield Row(path, record, dict(zip(_EDGE_NAMES, values, strict=True)), "record")


def _after_name(path: Path, content: bytes, place: int, record: int) -> int:
    """Return where a name ends that starts with its length, a signed byte."""
    (length,) = _unpacked(path, content, place, record, struct.Struct(">b"))
    return place + 1 + max(0, length)


def _unpacked(
    path: Path, content: bytes, place: int, record: int, form: struct.Struct
) -> tuple[int, ...]:
    if place + form.size > len(content):
        raise MapError(f"{path}, record {record}: ends after {len(content)} bytes: the file is truncated")
    return form.unpack_from(content, place)
