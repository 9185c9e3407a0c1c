"""The objects that are alive by the time of the log only."""

from __future__ import annotations

from safe_region.earth.frame import Area, Frame, Point
from server.core.matching_service import MatchingService
from server.model import LiveObject
from server.replication.log_objects import LogObjects


def kept(number, expiry_ms):
    return LiveObject(number, 14.1, 35.7, Point(0.0, 0.0), ("a",), 0, expiry_ms, b"", "", None, "anna")


def test_removed_objects_leave_nothing_behind():
    objects = LogObjects(MatchingService(Frame.of(Area(14.0, 35.0, 15.0, 36.0))).objects)
    objects.keep(kept(1, 5_000))
    objects.keep(kept(2, 7_000))
    for number in range(3, 5_000):
        objects.keep(kept(number, 10**11))
        objects.remove(number)
    assert len(objects._expiries) <= 2 * 2 + 1_024  # noqa: SLF001 - nothing else shows what it keeps
    assert objects.count_of("anna") == 2
    assert objects.expire(5_000) == [(5_000, 1)]
    assert objects.expire(10**12) == [(7_000, 2)]
    assert objects.count_of("anna") == 0
