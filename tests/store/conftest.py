"""Rows to store, and what is quiet about progress."""

from __future__ import annotations

import pytest

from safe_region.frame import Area, Frame
from safe_region.scoring import Similarity
from server.model import LiveObject, TopK

FRAME = Frame.of(Area(14.0, 35.0, 15.0, 36.0))
SPEC = TopK(("sushi", "茶"), 3, 0.1 + 0.2, Similarity.DICE)


def an_object(object_id, expiry_ms=10_000, payload=b"\x00\xff", lon=14.1, lat=35.7):
    point = FRAME.project(lon, lat)
    words = ("ice", "tea é")
    return LiveObject(object_id, lon, lat, point, words, 5, expiry_ms, payload, f"k{object_id}")


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"
