"""The model of the server: canonical forms of requests (`nearcast.canonical`), and contents of deltas."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from nearcast.canonical import (
    NO_WINDOW,
    Boolean,
    Bound,
    Clause,
    LiveObject,
    NewObject,
    Place,
    Reach,
    Slack,
    Spec,
    TopK,
    Window,
)
from safe_region.earth.frame import Point

__all__ = [
    "NO_WINDOW",
    "Boolean",
    "Bound",
    "Cause",
    "Clause",
    "Delta",
    "DropReason",
    "Entry",
    "LiveObject",
    "NewObject",
    "Place",
    "Reach",
    "Slack",
    "Spec",
    "TopK",
    "Window",
]

_DELTA_BYTES = 400
_ENTRY_BYTES = 400
_DROP_BYTES = 100
_WORD_BYTES = 60
"""Approximate sizes of a delta and its parts in Python: bounds need no more."""


class Cause(IntEnum):
    """Why a delta is sent. The numbers equal those on the wire."""

    SUBSCRIBED = 1
    REPORTED = 2
    PUBLISHED = 3
    RETRACTED = 4
    REPLACED = 5
    RESUMED = 6
    REWEIGHED = 7
    REFILLED = 8


class DropReason(IntEnum):
    """Why a device should forget an object. The numbers equal those on the wire."""

    OUT_OF_REACH = 1
    RETRACTED = 2
    REPLACED = 3
    OUT_OF_WINDOW = 4


class Entry(NamedTuple):
    """An object in a buffer with its text share for that subscription, in metres."""

    item: LiveObject
    r_m: float


@dataclass(slots=True)
class Delta:
    """One change of the objects that a device holds for one subscription, from the engine."""

    handle: int
    """The engine's number of the subscription."""
    cause: Cause
    anchor: Point
    bound: Bound | None
    """None if the subscription is not evaluated: its device holds nothing."""
    time_ms: int
    add: list[Entry] = field(default_factory=list)
    drop: dict[int, DropReason] = field(default_factory=dict)
    snapshot: bool = False

    @property
    def size_bytes(self) -> int:
        """The approximate size in memory in bytes. O(objects)."""
        size = _DELTA_BYTES + _DROP_BYTES * len(self.drop)
        for item, _ in self.add:
            size += _ENTRY_BYTES + len(item.payload) + _WORD_BYTES * len(item.keywords)
        return size
