"""Views and frames of watchers on the wire."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from identity.principal import Principal, local_name
from nearcast.checks import checked_name, require, valid_keyword
from nearcast.limits import LAT_MAX_DEG, LON_MAX_DEG
from nearcast.model import Distribution
from nearcast.v1 import control_service_pb2 as pb
from nearcast.wire.geometry import frame_message
from safe_region.earth.frame import Area, Frame
from server.core.watching.devices import STATES
from server.core.watching.view import Density, Grid, View
from server.core.watching.watcher import Devices, Objects, WatchedFrame
from server.counters import Counters
from server.limits import Limits
from server.transport.fields import missing
from server.transport.inspections import STATES as WIRE_STATES

_INTERVAL_MS = 1_000
_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 60_000
_POLLING_MS_MAX = 3_600_000
_DEVICES = 2_000
_OBJECTS = 10_000

_UNITS = 1e7
"""Units of positions in a degree."""

_LONGEST_MS = 2**32 - 1
_LATENCIES = ("report_latency_us", "delta_delay_ms", "publication_us", "commit_us", "slice_us")
_PER_MS = {"us": 1_000.0, "ms": 1.0}


def view_from(request: pb.WatchRequest, caller: Principal, limits: Limits) -> View:
    """Return the view of a request.

    Raises
    ------
    RefusedError
        Naming the field that is missing or out of its limits.
    """
    if not request.HasField("view"):
        raise missing("view")
    return View(
        _area(request),
        _number(request, "interval_ms", _INTERVAL_MS, _INTERVAL_MS_MIN, _INTERVAL_MS_MAX),
        _number(
            request, "devices_max", min(_DEVICES, limits.watch_devices_max), 1, limits.watch_devices_max
        ),
        _number(
            request, "objects_max", min(_OBJECTS, limits.watch_objects_max), 1, limits.watch_objects_max
        ),
        _grid(request, limits.watch_cells_max),
        _keyword(request, caller, limits),
        _device_id(request, caller, limits),
        _number(request, "polling_ms", _INTERVAL_MS, _INTERVAL_MS_MIN, _POLLING_MS_MAX),
    )


def _area(request: pb.WatchRequest) -> Area:
    bounds = request.view
    area = Area(bounds.lon_min, bounds.lat_min, bounds.lon_max, bounds.lat_max)
    for name, value in zip(Area._fields, area, strict=True):
        most = LON_MAX_DEG if name.startswith("lon") else LAT_MAX_DEG
        is_right = math.isfinite(value) and abs(value) <= most
        require(is_right, f"view.{name}", value, f"a finite number from -{most} to {most}")
    for least, most, name in ((0, 2, "lon"), (1, 3, "lat")):
        require(area[least] < area[most], f"view.{name}_min", area[least], f"less than view.{name}_max")
    return area


def _number(request: pb.WatchRequest, field: str, default: int, least: int, most: int) -> int:
    value = int(getattr(request, field)) or default
    require(least <= value <= most, field, value, f"{least:,} to {most:,}, or 0 for {default:,}")
    return value


def _grid(request: pb.WatchRequest, cells_max: int) -> Grid | None:
    columns, rows = request.grid_columns, request.grid_rows
    if columns == rows == 0:
        return None
    for name, value in (("grid_columns", columns), ("grid_rows", rows)):
        require(1 <= value <= cells_max, name, value, f"1 to {cells_max:,}, or both 0")
    require(
        columns * rows <= cells_max,
        "grid_rows",
        rows,
        f"at most {cells_max // columns:,}: {cells_max:,} cells",
    )
    return Grid(columns, rows)


def _keyword(request: pb.WatchRequest, caller: Principal, limits: Limits) -> str:
    if not request.keyword:
        return ""
    word = valid_keyword(request.keyword, limits.keyword_length_max)
    limit = f"1 to {limits.keyword_length_max} printable characters"
    require(bool(word), "keyword", repr(request.keyword), limit)
    return caller.qualified(word)


def _device_id(request: pb.WatchRequest, caller: Principal, limits: Limits) -> str:
    if not request.device_id:
        return ""
    return caller.qualified(checked_name(request.device_id, "device_id", limits.name_length_max))


class Events(NamedTuple):
    """The counters at one moment."""

    at_s: float
    reports: int
    objects_published: int
    objects_gone: int
    deltas: int
    latencies: dict[str, Distribution]

    @classmethod
    def of(cls, counters: Counters, at_s: float) -> Events:
        """Return the present counters."""
        named = counters.measures.named()
        return cls(
            at_s,
            counters.reports_accepted + counters.reports_superseded,
            counters.objects_published,
            counters.objects_gone,
            counters.deltas_sent,
            {name: Distribution(*named[name]) for name in _LATENCIES},
        )


class Rates:
    """The rates between the frames of one watcher.

    Parameters
    ----------
    now
        The counters at the start of the stream.
    """

    def __init__(self, now: Events) -> None:
        self._first = self._last = now
        self._is_first = True
        self._polling_total = 0.0

    def add_to(self, message: pb.WatchFrame, now: Events, attached_count: int, polling_ms: int) -> None:
        """Add the rates and latencies since the previous frame to a frame."""
        before, self._last = self._last, now
        if self._is_first:
            self._is_first = False
            message.rates.SetInParent()
            return
        seconds = max(1e-3, now.at_s - before.at_s)
        polling = 1_000.0 * attached_count / polling_ms
        self._polling_total += polling * seconds
        message.rates.CopyFrom(
            pb.WatchedRates(
                reports=(now.reports - before.reports) / seconds,
                objects_published=(now.objects_published - before.objects_published) / seconds,
                objects_gone=(now.objects_gone - before.objects_gone) / seconds,
                deltas=(now.deltas - before.deltas) / seconds,
                polling_reports=polling,
                reports_total=now.reports - self._first.reports,
                polling_reports_total=self._polling_total,
            )
        )
        message.latencies.extend(_latencies(before, now))


def _latencies(before: Events, now: Events) -> list[pb.WatchedLatency]:
    found = []
    for name in _LATENCIES:
        values = now.latencies[name].since(before.latencies[name])
        count, per_ms = sum(values.counts), _PER_MS[name.rpartition("_")[2]]
        if count:
            p50_ms, p99_ms = (values.quantile(share) / per_ms for share in (0.5, 0.99))
            found.append(pb.WatchedLatency(name=name, count=count, p50_ms=p50_ms, p99_ms=p99_ms))
    return found


def watch_message(found: WatchedFrame, sequence: int, request_number: int, frame: Frame) -> pb.WatchFrame:
    """Return the message of what was found, without rates."""
    return pb.WatchFrame(
        time_ms=found.time_ms,
        sequence=sequence,
        request_number=request_number,
        reset=found.is_first,
        devices=_devices(found.devices),
        objects=_objects(found.objects, found.time_ms),
        frame=frame_message(frame) if found.is_first else None,
        more=found.has_more,
    )


def _devices(found: Devices) -> pb.WatchedDevices:
    return pb.WatchedDevices(
        view_count=found.view_count,
        placed_count=found.placed_count,
        attached_count=found.attached_count,
        thinned=found.is_thinned,
        numbers=found.numbers.tolist(),
        ids=map(local_name, found.device_ids),
        lon_e7=_units(found.lon),
        lat_e7=_units(found.lat),
        margin_m=found.margin_m.tolist(),
        age_ms=_bounded(found.age_ms),
        states=[WIRE_STATES[STATES[one]] for one in found.state.tolist()],
        removed_numbers=found.removed.tolist(),
        density=_density(found.density),
    )


def _objects(found: Objects, time_ms: int) -> pb.WatchedObjects:
    added = found.added
    return pb.WatchedObjects(
        view_count=found.view_count,
        count=found.live_count,
        thinned=found.is_thinned,
        ids=added.ids.tolist(),
        lon_e7=_units(added.lon),
        lat_e7=_units(added.lat),
        age_ms=_bounded(time_ms - added.created_ms),
        left_ms=_bounded(added.expiry_ms - time_ms),
        removed_ids=found.removed.tolist(),
        density=_density(found.density),
    )


def _units(degrees: Any) -> list[int]:  # noqa: ANN401 - an array
    return np.rint(degrees * _UNITS).astype(np.int64).tolist()  # type: ignore[no-any-return]


def _bounded(durations_ms: Any) -> list[int]:  # noqa: ANN401 - an array
    return np.clip(durations_ms, 0, _LONGEST_MS).tolist()  # type: ignore[no-any-return]


def _density(found: Density | None) -> pb.WatchedDensity | None:
    if found is None:
        return None
    columns, rows = found.grid
    return pb.WatchedDensity(columns=columns, rows=rows, counts=found.counts.tolist())
