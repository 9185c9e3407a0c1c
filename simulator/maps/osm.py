"""Reads OpenStreetMap files: the records that the rules find in them.

A file is read three times, for its relations, its ways and its nodes, so that it may be in any order and
only used nodes are kept; once more if relations have outlines. Memory: about 30 bytes a kept node; tags
are discarded at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import osmium
from osmium.filter import IdFilter, KeyFilter
from osmium.io import File
from osmium.osm import NODE, RELATION, WAY, Node, Relation, Way

from simulator.maps.errors import MapError
from simulator.maps.files import checked_ending
from simulator.maps.places import KIND_KEYS, PlaceText, place_text
from simulator.maps.relations import Member, Outline, Restriction, outline_of, restriction_of
from simulator.maps.roads import Lanes, lanes

STAGE_RELATIONS = "map: relations"
STAGE_WAYS = "map: ways"
STAGE_NODES = "map: nodes"

_REPORT_EVERY = 20_000
_CHUNK = 500_000
"""Nodes processed together."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]
Tags = dict[str, str]

_UNREADABLE = (RuntimeError, ValueError, IndexError, ArithmeticError, osmium.InvalidLocationError)
"""The exceptions of osmium about files: its own errors, and C++ errors about numbers and text."""


class PlaceRecord(NamedTuple):
    """A place.

    Parameters
    ----------
    number
        A unique number: twice its OSM id, plus one for ways.
    text
        The text from its tags.
    refs
        The nodes around it, or its single node.
    """

    number: int
    text: PlaceText
    refs: Longs


class Records(NamedTuple):
    """The records that are kept of a file.

    Parameters
    ----------
    road_ids, road_refs, road_lanes
        The number of each road, its nodes, and its lanes.
    places
        Places from nodes and from closed ways.
    coasts
        Nodes of pieces of coast: land on the left, water on the right.
    lakes
        Nodes around lakes.
    restrictions
        Forbidden turns.
    outlines
        Places that are areas with parts or holes.
    outline_refs
        Nodes of the ways around these, by the way's number.
    node_ids
        int64, ascending: the nodes that are used above and have a known position.
    lons, lats
        Their positions.
    """

    road_ids: list[int]
    road_refs: list[Longs]
    road_lanes: list[Lanes]
    places: list[PlaceRecord]
    coasts: list[Longs]
    lakes: list[Longs]
    restrictions: list[Restriction]
    outlines: list[Outline]
    outline_refs: dict[int, Longs]
    node_ids: Longs
    lons: Floats
    lats: Floats

    def known(self, refs: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
        """Return the positions of nodes in `node_ids`, and the mask of nodes that are in it."""
        if not len(self.node_ids):
            return np.zeros(len(refs), np.int64), np.zeros(len(refs), np.bool_)
        nodes = np.minimum(np.searchsorted(self.node_ids, refs), len(self.node_ids) - 1)
        return nodes, self.node_ids[nodes] == refs


def read_records(path: Path, progress: Progress) -> Records:
    """Read a file. A few microseconds for each way and half of one for each node.

    Parameters
    ----------
    path
        An OpenStreetMap file; its format follows from its suffix.
    progress
        Called as progress(stage, done, total); a total of 0 is not known yet.

    Raises
    ------
    MapError
        If there is no such file, its suffix is unknown, or it cannot be read completely.
    """
    source = _Source(path, checked_ending(path).removeprefix("."))
    nothing = np.empty(0)
    found = Records([], [], [], [], [], [], [], [], {}, np.empty(0, np.int64), nothing, nothing)
    _read_relations(source, found, progress)
    _read_ways(source, found, progress)
    used = [*found.road_refs, *(one.refs for one in found.places), *found.coasts, *found.lakes]
    used += found.outline_refs.values()
    needed = np.unique(np.concatenate([np.empty(0, np.int64), *used]))
    return _read_nodes(source, found, needed, progress)


class _Source(NamedTuple):
    """A file and its format. The errors that the library raises while it reads are about the file."""

    path: Path
    suffix: str

    def ways(self, *keys: str) -> Iterator[tuple[Way, Tags]]:
        """Yield ways that have one of these keys. They are valid until the next one."""
        relevant = KeyFilter(*keys)
        try:
            for way in osmium.FileProcessor(self._file(), WAY).with_filter(relevant):
                if isinstance(way, Way) and way.visible:
                    yield way, {tag.k: tag.v for tag in way.tags}
        except _UNREADABLE as error:
            raise MapError(f"{self.path} cannot be read: {error}") from None

    def ways_of(self, numbers: set[int]) -> Iterator[Way]:
        """Yield ways by their numbers. They are valid until the next one."""
        try:
            for way in osmium.FileProcessor(self._file(), WAY).with_filter(IdFilter(numbers)):
                if isinstance(way, Way) and way.visible:
                    yield way
        except _UNREADABLE as error:
            raise MapError(f"{self.path} cannot be read: {error}") from None

    def relations(self) -> Iterator[tuple[Relation, Tags]]:
        """Yield relations that have a type. They are valid until the next one."""
        try:
            for one in osmium.FileProcessor(self._file(), RELATION).with_filter(KeyFilter("type")):
                if isinstance(one, Relation) and one.visible:
                    yield one, {tag.k: tag.v for tag in one.tags}
        except _UNREADABLE as error:
            raise MapError(f"{self.path} cannot be read: {error}") from None

    def nodes(self) -> Iterator[tuple[Node, Tags]]:
        """Yield nodes that have a position. They are valid until the next one."""
        no_tags: Tags = {}
        try:
            for node in osmium.FileProcessor(self._file(), NODE):
                if isinstance(node, Node) and node.visible and node.location.valid():
                    yield node, {tag.k: tag.v for tag in node.tags} if len(node.tags) else no_tags
        except _UNREADABLE as error:
            raise MapError(f"{self.path} cannot be read: {error}") from None

    def _file(self) -> File:
        return File(str(self.path.resolve()), self.suffix)


def _read_relations(source: _Source, found: Records, progress: Progress) -> None:
    progress(STAGE_RELATIONS, 0, 0)
    count = 0
    for relation, tags in source.relations():
        count += 1
        if count % _REPORT_EVERY == 0:
            progress(STAGE_RELATIONS, count, 0)
        if tags["type"] == "restriction":
            restriction = restriction_of(tags, _members(relation))
            if restriction is not None:
                found.restrictions.append(restriction)
        elif tags["type"] == "multipolygon":
            outline = outline_of(relation.id, tags, _members(relation))
            if outline is not None:
                found.outlines.append(outline)
    progress(STAGE_RELATIONS, max(1, count), max(1, count))


def _members(relation: Relation) -> list[Member]:
    return [Member(one.type, one.ref, one.role) for one in relation.members]


def _read_ways(source: _Source, found: Records, progress: Progress) -> None:
    progress(STAGE_WAYS, 0, 0)
    count = 0
    for way, tags in source.ways("highway", "natural", *KIND_KEYS):
        count += 1
        if count % _REPORT_EVERY == 0:
            progress(STAGE_WAYS, count, 0)
        _keep_way(way, tags, found)
    around = {number for one in found.outlines for number in (*one.outer_ways, *one.inner_ways)}
    if around:
        for way in source.ways_of(around):
            found.outline_refs[way.id] = np.array([node.ref for node in way.nodes], np.int64)
    progress(STAGE_WAYS, max(1, count), max(1, count))


def _keep_way(way: Way, tags: Tags, found: Records) -> None:
    """Add a way to the records: as a road, else as a place, else as water, if it is any."""
    allowed = lanes(tags)
    is_road = allowed.forward is not None or allowed.backward is not None
    natural = tags.get("natural")
    text = None if is_road else place_text(tags)
    if not is_road and text is None and natural not in {"coastline", "water"}:
        return
    refs = np.array([node.ref for node in way.nodes], np.int64)
    is_ring = len(refs) > 3 and refs[0] == refs[-1]  # noqa: PLR2004 a triangle, closed
    if is_road:
        found.road_ids.append(way.id)
        found.road_refs.append(refs)
        found.road_lanes.append(allowed)
    elif text is not None and is_ring:
        found.places.append(PlaceRecord(2 * way.id + 1, text, refs[:-1]))
    elif natural == "coastline":
        found.coasts.append(refs)
    elif natural == "water" and is_ring:
        found.lakes.append(refs)


def _read_nodes(source: _Source, found: Records, needed: Longs, progress: Progress) -> Records:
    total = max(1, len(needed))
    progress(STAGE_NODES, 0, total)
    ids, lons, lats = array("q"), array("d"), array("d")
    kept: list[tuple[Longs, Floats, Floats]] = []
    places = list(found.places)
    place_nodes: list[int] = []
    for node, tags in source.nodes():
        location = node.location
        ids.append(node.id)
        lons.append(location.lon)
        lats.append(location.lat)
        text = place_text(tags) if tags else None
        if text is not None:
            places.append(PlaceRecord(2 * node.id, text, np.array([node.id], np.int64)))
            place_nodes.append(node.id)
        if len(ids) == _CHUNK:
            kept.append(_of(needed, place_nodes, ids, lons, lats))
            ids, lons, lats = array("q"), array("d"), array("d")
            place_nodes.clear()
            progress(STAGE_NODES, min(total, sum(len(one[0]) for one in kept)), total)
    kept.append(_of(needed, place_nodes, ids, lons, lats))
    progress(STAGE_NODES, total, total)
    all_ids, all_lons, all_lats = (np.concatenate(column) for column in zip(*kept, strict=True))
    node_ids, first = np.unique(all_ids, return_index=True)
    return found._replace(places=places, node_ids=node_ids, lons=all_lons[first], lats=all_lats[first])


def _of(
    needed: Longs, place_nodes: list[int], ids: array[int], lons: array[float], lats: array[float]
) -> tuple[Longs, Floats, Floats]:
    """Return the nodes that are used."""
    numbers = np.array(ids, np.int64)
    is_used = np.isin(numbers, np.array(place_nodes, np.int64))
    if len(needed):
        nearest = np.minimum(np.searchsorted(needed, numbers), len(needed) - 1)
        is_used |= needed[nearest] == numbers
    return numbers[is_used], np.array(lons)[is_used], np.array(lats)[is_used]
