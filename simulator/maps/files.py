"""Files of maps: the suffixes of their names, the pairs of files, and reading text from them."""

from __future__ import annotations

import gzip
import zlib
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from simulator.maps.errors import MapError

OSM_ENDINGS = (".osm.pbf", ".osm", ".osm.gz", ".osm.bz2")
"""OpenStreetMap files."""

COMPRESSED = ".gz"


class Layout(Enum):
    """The layout of the two files of a road network, by the suffixes of their names."""

    NUMBERS = (".cnode", ".cedge")
    """Lists of numbers, without names."""
    COLUMNS = ("nodes.csv", "edges.csv")
    """CSV, columns by name."""
    BRINKHOFF = (".node", ".edge")
    """The format of Brinkhoff's generator, text or binary."""
    DIMACS = (".co", ".gr")
    """The format of the 9th DIMACS challenge."""


class RoadFiles(NamedTuple):
    """The two files of a road network."""

    nodes: Path
    edges: Path
    layout: Layout


_LAYOUTS = {
    nodes + gz: (one, edges + gz)
    for one in Layout
    for nodes, edges in [one.value]
    for gz in ("", COMPRESSED)
}
"""By the suffix of the file of nodes: the layout, and the suffix of the file of edges."""

_NODE_ENDINGS = {edges: nodes for nodes, (_, edges) in _LAYOUTS.items()}

ENDINGS = (*OSM_ENDINGS, *_LAYOUTS, *_NODE_ENDINGS)
"""Suffixes of every kind of map; the case of a name does not matter."""


def ending_of(path: Path) -> str | None:
    """Return the suffix in `ENDINGS` of a file's name, the longest if several fit; None for none."""
    name = path.name.lower()
    return max((one for one in ENDINGS if name.endswith(one)), key=len, default=None)


def checked(path: Path) -> Path:
    """Return a path if it is a file that is not empty.

    Raises
    ------
    MapError
        If it is not.
    """
    if not path.exists():
        raise MapError(f"file {path} does not exist")
    if not path.is_file():
        raise MapError(f"{path} is not a file")
    if path.stat().st_size == 0:
        raise MapError(f"{path} is empty")
    return path


def checked_ending(path: Path) -> str:
    """Return the suffix of a map file that exists.

    Raises
    ------
    MapError
        If it does not exist, or is of no known kind.
    """
    ending = ending_of(path)
    if path.is_file() and ending is None:
        raise MapError(f"{path} is not a map: its name must end in one of {', '.join(ENDINGS)}")
    return ending_of(checked(path)) or ""


def road_files(path: Path) -> RoadFiles | None:
    """Return both files of a road network, given either of them; None for other maps.

    Raises
    ------
    MapError
        If one of the two is missing or empty.
    """
    ending = ending_of(path) or ""
    if ending in _LAYOUTS:
        layout, other_ending = _LAYOUTS[ending]
        return RoadFiles(checked(path), _other(path, ending, other_ending, layout), layout)
    if ending in _NODE_ENDINGS:
        other_ending = _NODE_ENDINGS[ending]
        layout, _ = _LAYOUTS[other_ending]
        return RoadFiles(_other(path, ending, other_ending, layout), checked(path), layout)
    return None


def _other(path: Path, ending: str, other_ending: str, layout: Layout) -> Path:
    stem, tail = path.name[: -len(ending)], path.name[-len(ending) :]
    other = path.with_name(stem + (other_ending.upper() if tail.isupper() else other_ending))
    if other.exists():
        return checked(other)
    checked(path)
    if layout is Layout.DIMACS and other_ending in _LAYOUTS:
        raise MapError(
            f"{path} has arcs but no coordinates: they are in {other.name}, and file {other} does not "
            "exist"
        )
    raise MapError(f"{path} is one half of a road network: file {other} does not exist")


def content_of(path: Path) -> bytes:
    """Read a file, decompressed if its name ends in .gz.

    Raises
    ------
    MapError
        If it cannot be read to its end.
    """
    try:
        content = checked(path).read_bytes()
        if path.name.lower().endswith(COMPRESSED):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise MapError(f"{path} cannot be read: {error}") from None
    return content


def text_of(path: Path) -> str:
    """Read a text file, decompressed if its name ends in .gz.

    Raises
    ------
    MapError
        If it cannot be read to its end, or is not UTF-8.
    """
    content = content_of(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MapError(f"{path}, line {line}: not UTF-8 text ({error.reason})") from None
