"""Points of traces: the columns that are read from every kind of file, and the verdicts on points."""

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
"""Points as they are read: the file, the vehicle and trip, the position in the file (block, row), time
and place. Missing or unreadable values are null."""

KEYS = ("source", "vehicle", "trip")
"""The columns that identify a trace, before it is cut."""

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
"""The outcome for each point: `Verdict`; if it is kept, the piece of its trace, from 0, and the time
since the point before in this piece, null for the first."""


class Verdict(IntEnum):
    """Whether a point is kept, else the reason why not; the first reason counts."""

    KEPT = 0
    NO_TIME = 1
    """Missing or unreadable."""
    NO_POSITION = 2
    """Missing, not degrees, or 0, 0, the position of receivers that have no fix."""
    OTHER_TIME = 3
    """Outside of the requested time."""
    OUTSIDE = 4
    """Not on the map; without a map, far from nearly all other points."""
    DUPLICATE = 5
    """At the same time as one before."""
    BACK = 6
    """Earlier than one before."""
    JUMP = 7
    """Too far from the one before to be reached in that time."""
    ISOLATED = 8
    """In a piece with too few points."""

    @property
    def text(self) -> str:
        """The verdict in words."""
        return self.name.lower().replace("_", " ")
