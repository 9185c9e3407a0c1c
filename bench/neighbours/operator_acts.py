"""Acts of an operator: each function acts until the time of its caller is over."""

from __future__ import annotations

from bench.neighbours.caller import WATCH, Act, Caller
from nearcast.v1 import control_service_pb2 as control_pb2
from nearcast.v1 import geometry_pb2

_GRID = 32


def watching(interval_ms: int) -> Act:
    """Return an act that watches the whole area as the live map does."""

    async def act(caller: Caller) -> None:
        request = control_pb2.WatchRequest(
            view=geometry_pb2.Bounds(lon_min=12.5, lat_min=55.6, lon_max=12.65, lat_max=55.75),
            interval_ms=interval_ms,
            grid_columns=_GRID,
            grid_rows=_GRID,
        )
        await caller.write(caller.stream(WATCH), request.SerializeToString())
        await caller.rest()

    return act
