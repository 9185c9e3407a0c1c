"""A watcher: the rows that it has, and the changes that its next frame brings.

Operations: a frame costs some 20 ns per slot of the table of objects and O(log n) per row in the view, in
slices of some milliseconds, and the refresh of the devices that all watchers share. A watcher keeps the
numbers of its rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from index.batches import Floats, Ints
from server.core.coordinator import Coordinator
from server.core.object_table import WatchedColumns
from server.core.watching.devices import DeviceColumns
from server.core.watching.view import Density, View, cell_counts, sample

_SLOTS = 16_384
"""Slots of objects that are looked through at a time: a millisecond."""

_ROWS_MAX = 4_000
"""Devices, and objects, that a frame brings: to encode them takes two milliseconds."""

_NO_IDS: Ints = np.empty(0, dtype=np.int64)
_NO_ROWS: Floats = np.empty((0, 5))


class Devices(NamedTuple):
    """The devices of a frame."""

    view_count: int
    placed_count: int
    attached_count: int
    is_thinned: bool
    numbers: Ints
    device_ids: list[str]
    lon: Floats
    lat: Floats
    margin_m: Floats
    age_ms: Ints
    state: npt.NDArray[np.int8]
    """Numbers of states (`devices.STATES`)."""
    removed: Ints
    density: Density | None


class Objects(NamedTuple):
    """The objects of a frame."""

    view_count: int
    live_count: int
    is_thinned: bool
    added: WatchedColumns
    removed: Ints
    density: Density | None


class WatchedFrame(NamedTuple):
    """The state of the server within a view: rows that have changed since the previous frame."""

    time_ms: int
    is_first: bool
    """Whether it is the first frame of its view."""
    has_more: bool
    """Whether more rows have changed than the frame brings."""
    devices: Devices
    objects: Objects


class Watcher:
    """Selects the frames of one watcher.

    Parameters
    ----------
    coordinator
        The state of the server.
    devices
        The columns of the devices, which all watchers share.
    tenant
        The tenant whose devices and objects the watcher gets.
    """

    def __init__(self, coordinator: Coordinator, devices: DeviceColumns, tenant: str) -> None:
        self._coordinator = coordinator
        self._devices = devices
        self._tenant = tenant
        self._view: View | None = None
        self._is_first = True
        self._has_more = False
        self._object_ids: Ints = _NO_IDS
        self._numbers: Ints = _NO_IDS
        self._device_rows: Floats = _NO_ROWS

    def frame(self, view: View) -> Generator[WatchedFrame | None]:
        """Select the next frame, a slice at each step; the last step yields the frame."""
        for _ in self._devices.refresh():
            yield None
        if view is not self._view:
            self._view, self._is_first = view, True
            self._object_ids, self._numbers, self._device_rows = _NO_IDS, _NO_IDS, _NO_ROWS
        objects = ObjectSelection(self._coordinator, view, self._tenant)
        for _ in objects.steps():
            yield None
        is_first, self._is_first, self._has_more = self._is_first, False, False
        devices = self._device_changes(view)
        yield None
        changes = self._object_changes(objects)
        now_ms = self._coordinator.matching.now_ms
        yield WatchedFrame(now_ms, is_first, self._has_more, devices, changes)

    def _object_changes(self, selection: ObjectSelection) -> Objects:
        rows, before = selection.rows(), self._object_ids
        is_known = _are_in(rows.ids, before)
        added = self._first_of(np.flatnonzero(~is_known))
        is_known[added] = True
        self._object_ids = rows.ids[is_known]
        return Objects(
            selection.view_count,
            self._coordinator.matching.objects.count_of_tenant(self._tenant),
            len(rows.ids) < selection.view_count,
            rows.part(added),
            before[~_are_in(before, rows.ids)],
            selection.density,
        )

    def _first_of(self, rows: Ints) -> Ints:
        """Return the rows that a frame brings; the next one brings the others."""
        self._has_more |= len(rows) > _ROWS_MAX
        return rows[:_ROWS_MAX]

    def _device_changes(self, view: View) -> Devices:
        columns = self._devices
        own = columns.of_tenant(self._tenant)
        found = columns.within(own, view.area)
        rows = found[sample(columns.number[found], view.devices_max)]
        is_thinned = len(rows) < len(found)
        chosen = columns.slot_of(view.device_id) if view.device_id else None
        if chosen is not None and chosen not in rows:
            rows = np.append(rows, chosen)
        rows = rows[np.argsort(columns.number[rows])]
        changed, removed = self._changed(rows)
        density = None
        if is_thinned and view.grid is not None:
            density = Density(view.grid, cell_counts(view, columns.lon[found], columns.lat[found]))
        return Devices(
            len(found),
            len(own),
            columns.attached_count(own),
            is_thinned,
            columns.number[changed],
            [columns.device_ids[slot] for slot in changed.tolist()],
            columns.lon[changed],
            columns.lat[changed],
            columns.margin_m[changed],
            np.maximum(0, self._coordinator.clock.lease_ms - columns.placed_ms[changed]),
            columns.state[changed],
            removed,
            density,
        )

    def _changed(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return the slots of devices with another row than before, and numbers without a row."""
        columns = self._devices
        numbers = columns.number[slots]
        rows = np.stack(
            [
                columns.lon[slots],
                columns.lat[slots],
                columns.margin_m[slots],
                columns.placed_ms[slots],
                columns.state[slots],
            ],
            axis=1,
        )
        before = self._numbers
        is_known = _are_in(numbers, before)
        is_same = is_known.copy()
        rows_before = self._device_rows[np.searchsorted(before, numbers[is_known])]
        is_same[is_known] = (rows_before == rows[is_known]).all(axis=1)
        changed = self._first_of(np.flatnonzero(~is_same))
        kept = is_known.copy()
        kept[changed] = True
        is_late = is_known & ~is_same
        is_late[changed] = False
        rows[is_late] = np.nan  # which differs from every row, so that the next frame has these
        self._numbers, self._device_rows = numbers[kept], rows[kept]
        return slots[changed], before[~_are_in(before, numbers)]


class ObjectSelection:
    """The objects of a view, found a slice at a time.

    Parameters
    ----------
    coordinator
        Has the objects.
    view
        The view.
    tenant
        The tenant of the objects.
    """

    def __init__(self, coordinator: Coordinator, view: View, tenant: str) -> None:
        self._objects = coordinator.matching.objects
        self._by_tenant = coordinator.serves_tenants
        self._view = view
        self._tenant = tenant
        self._parts = [self._objects.columns(_NO_IDS)]
        self._kept_count = 0
        self._cells: Ints | None = None
        self.view_count = 0
        """Objects found so far."""

    def steps(self) -> Iterator[None]:
        """Look through the table of objects, some slots at each step."""
        first = 0
        while first < self._objects.slot_end:
            self._look(first)
            first += _SLOTS
            yield
            if self._kept_count > 2 * self._view.objects_max:
                self._thin()
                yield
        self._thin()
        yield

    def _look(self, first: int) -> None:
        objects, view = self._objects, self._view
        found = objects.within(slice(first, min(first + _SLOTS, objects.slot_end)), view.area)
        if self._by_tenant:
            found = objects.of_tenant(found, self._tenant)
        if view.keyword:
            found = objects.with_keyword(found, view.keyword)
        ids, lon, lat = objects.places(found)
        self.view_count += len(found)
        if view.grid is not None:
            cells = cell_counts(view, lon, lat)
            self._cells = cells if self._cells is None else self._cells + cells
        kept = found[sample(ids, view.objects_max)]
        self._kept_count += len(kept)
        self._parts.append(objects.columns(kept))

    def _thin(self) -> None:
        """Keep no more of the objects found than the view has."""
        found = WatchedColumns.joined(self._parts)
        self._parts = [found.part(sample(found.ids, self._view.objects_max))]
        self._kept_count = len(self._parts[0].ids)

    def rows(self) -> WatchedColumns:
        """Return the objects, by id; some of them, if there are too many. After all steps."""
        (found,) = self._parts
        return found.part(np.argsort(found.ids))

    @property
    def density(self) -> Density | None:
        """The density, if the view has a grid and there are too many objects."""
        grid = self._view.grid
        if grid is None or self._cells is None or self.view_count <= self._view.objects_max:
            return None
        return Density(grid, self._cells)


def _are_in(values: Ints, ordered: Ints) -> npt.NDArray[np.bool_]:
    """Return which values are among others, which are in ascending order."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: npt.NDArray[np.bool_] = ordered[places] == values
    return found
