"""What is stored, and what is quiet about progress."""

from __future__ import annotations

import pytest

from safe_region.earth.frame import Area, Frame
from server.model import LiveObject
from server.store import opening
from server.store.mutations import PutSubscription

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
KIND = 7
SPEC = '{"any":[1,0.30000000000000004,"茶 \\"é\\""]}'
"""Of a kind that nobody knows: the store does not either."""


def an_object(object_id, expiry_ms=10_000, payload=b"\x00\xff", lon=14.1, lat=35.7):
    point = FRAME.project(lon, lat)
    words = ("ice", "tea é")
    return LiveObject(object_id, lon, lat, point, words, 5, expiry_ms, payload, f"k{object_id}")


def a_subscription(device_id, number=1, spec=SPEC, kind=KIND, name=""):
    return PutSubscription(device_id, number, kind, spec, name)


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture(scope="module")
def without_fsync():
    """For tests of what is written, not of when it is on disk: the files are the same, made faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"
