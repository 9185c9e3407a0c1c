"""Points of traces: what is read of every kind of file, and what may become of a point."""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql.types import (
    ByteType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

RAW = StructType(
    [
        StructField("source", StringType(), nullable=False),
        StructField("vehicle", StringType(), nullable=False),
        StructField("trip", StringType(), nullable=False),
        StructField("block", LongType(), nullable=False),
        StructField("row", LongType(), nullable=False),
        StructField("t_ms", LongType(), nullable=True),
        StructField("lon", DoubleType(), nullable=True),
        StructField("lat", DoubleType(), nullable=True),
    ]
)
"""As they are read: the file, whose they are, where they stand in the file (block, row), when and where.
Null is what is missing or cannot be read."""

KEYS = ("source", "vehicle", "trip")
"""What makes a trace, before it is cut."""

ORDER = ("block", "row")
"""The order of points in a file."""

POINTS = StructType(
    [
        *RAW.fields,
        StructField("verdict", ByteType(), nullable=False),
        StructField("piece", IntegerType(), nullable=False),
        StructField("step_ms", LongType(), nullable=True),
    ]
)
"""What became of each: `Verdict`; if it is kept, the piece of its trace, from 0, and the time since the
point before in this piece, null for the first."""


class Verdict(IntEnum):
    """Whether a point is kept, else why not; the first reason counts."""

    KEPT = 0
    NO_TIME = 1
    """Missing, or it cannot be read."""
    NO_POSITION = 2
    """Missing, no degrees, or at 0, 0, where receivers are that do not know where they are."""
    OTHER_TIME = 3
    """Before or after what was asked for."""
    OUTSIDE = 4
    """Not on the map; without one, far from nearly all others."""
    DUPLICATE = 5
    """At the same time as one before."""
    BACK = 6
    """Earlier than one before."""
    JUMP = 7
    """Farther from the one before than anybody gets in that time."""
    ISOLATED = 8
    """In a piece with too few points."""

    @property
    def text(self) -> str:
        """Return it in words, for people."""
        return self.name.lower().replace("_", " ")
