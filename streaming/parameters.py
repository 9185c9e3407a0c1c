"""The parameters of a job, checked before any work starts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, field_validator, model_validator

from feeds.parameters import ExistingFile, ParameterError, Parameters, Shown
from feeds.redis.address import RedisAddress, is_redis
from index.catalogue import (
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    KINDS,
    WEIGHTED_SUBSCRIPTION_INDEXES,
)
from nearcast.limits import DEFAULT_LIMITS, DURATION_MS_MAX, TIME_MS_MAX
from safe_region.earth.frame import Area
from streaming.mechanism import Mechanism
from streaming.window_size import WindowSize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ParameterError", "StreamParameters"]

PARTITIONS_MAX = 1024
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AHEAD: Any = "1d"  # `streaming.plan.AHEAD_MS`
_URI = re.compile(r"[a-z][a-z0-9+.-]*:/")


def _read_where(value: Any) -> Any:  # noqa: ANN401
    """Return the path of a text that is no URI."""
    return Path(value) if isinstance(value, str) and not _URI.match(value) else value


def _read_feed(value: Any) -> Any:  # noqa: ANN401
    is_address = isinstance(value, str) and is_redis(value)
    return RedisAddress.parse(value) if is_address else _read_where(value)


def _read_area(value: Any) -> Any:  # noqa: ANN401
    return Area.parse(value) if isinstance(value, str) else value


def _read_window(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, str):
        return value
    text = value.replace("_", "").strip()
    if text.isdecimal() and int(text):
        return WindowSize(count=int(text))
    if duration_ms := _milliseconds(text):
        return WindowSize(duration_ms=duration_ms)
    raise ValueError("must be a number of messages, or a time like 90s, 10m, 24h")


def _read_duration(value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, str):
        return value
    if duration_ms := _milliseconds(value.strip()):
        return duration_ms
    raise ValueError("must be a time like 500ms, 10s, 1m")


def _milliseconds(text: str) -> int:
    """Parse a time with its unit; return it in milliseconds, or 0 if it is not valid."""
    found = _DURATION.fullmatch(text)
    return int(found[1]) * _UNITS_MS[found[2]] if found else 0


_Where = Annotated[Path | str, BeforeValidator(_read_where), Shown(metavar="FOLDER")]
_Redis = Annotated[InstanceOf[RedisAddress], BeforeValidator(_read_feed)]
_Feed = Annotated[
    Path | str | InstanceOf[RedisAddress],
    BeforeValidator(_read_feed),
    Shown(metavar="FOLDER|redis://...", is_secret=True),
]
_Area = Annotated[Area, BeforeValidator(_read_area), Shown(metavar="LON,LAT,LON,LAT|FOLDER")]
_Window = Annotated[InstanceOf[WindowSize], BeforeValidator(_read_window), Shown(metavar="COUNT|TIME")]
_Interval = Annotated[int, BeforeValidator(_read_duration)]


class StreamParameters(Parameters):
    """The inputs, settings and outputs of a job.

    Folders are paths, or URIs of any file system that Spark has.
    """

    messages: _Feed = Field(
        description="Folder that receives files of messages, or redis://host:port/database/feed?streams=1."
    )
    subscriptions: _Feed = Field(description="The same for subscriptions.")
    out: _Where = Field(description="Folder of the job's results.")
    checkpoint: _Where = Field(description="Folder of the state with which the job resumes.")
    area: _Area = Field(
        description="Service area: west, south, east, north; or the folder of a simulation, or "
        "its URI, to use its area."
    )
    window: _Window = Field(
        description="Window of messages: a number of latest messages (100000), or a duration "
        "(90s, 10m, 24h)."
    )
    mechanism: Mechanism = Field(
        "hashing", description="Mechanism that divides subscriptions among partitions."
    )
    partitions: int = Field(
        4,
        ge=1,
        le=PARTITIONS_MAX,
        description="Number of partitions; at least the number of cores.",
    )
    first_level: int = Field(
        0,
        ge=0,
        description="For spatial-first and keyword-first: parts of the first division, a divisor "
        "of --partitions; with 0 both divisions have about as many parts.",
    )
    subscription_index: str = Field(
        DEFAULT_SUBSCRIPTION_INDEX,
        description="Index of top-k subscriptions, one that supports tf-idf; others: `nearcast indexes`.",
    )
    clause_index: str = Field(
        DEFAULT_CLAUSE_INDEX,
        description="Index of boolean subscriptions; others: `nearcast indexes`.",
    )
    stationary_buffer: Literal["cost", "cskyband", "skyband", "kmax"] = Field(
        "cost",
        description="Buffer that is held beyond the result of each top-k subscription; the last "
        "three as in Skype.",
    )
    idf: ExistingFile | None = Field(
        None,
        description="Weights of keywords for the similarity tfidf (nearcast idf build); without "
        "it, all weights are 1.",
    )
    format: Literal["parquet", "json"] = Field("parquet", description="Format of the files of feeds.")
    files_per_batch: int = Field(
        1000,
        ge=1,
        description="Maximum number of new files of each feed in a batch; of entries in Redis.",
    )
    updates: Annotated[_Redis | None, Shown(metavar="redis://...", is_secret=True)] = Field(
        None, description="Also send changes to Redis: redis://host:port/database/feed."
    )
    ahead_ms: Annotated[_Interval, Shown(flag="--ahead", metavar="TIME", limit="as 1h, 30d")] = Field(
        _AHEAD,
        validate_default=True,
        ge=1,
        le=TIME_MS_MAX,
        description="Maximum time by which a message may be ahead of the clock; others are refused.",
    )
    once: bool = Field(False, description="End when all existing messages have been read.")
    every_ms: Annotated[_Interval | None, Shown(flag="--every", metavar="TIME")] = Field(
        None,
        description="Interval between starts of batches (500ms, 10s), if there are new messages; "
        "by default a batch starts after the previous one.",
    )
    memory: Path = Field(
        Path("/dev/shm"),  # noqa: S108 - a folder for each job, of its own
        description="Folder on a file system in memory, which holds indexes between batches.",
    )

    @property
    def feeds(self) -> tuple[tuple[str, Path | str | RedisAddress], ...]:
        """The feeds by name, in the order in which Spark knows them."""
        return (("messages", self.messages), ("subscriptions", self.subscriptions))

    @field_validator("subscription_index")
    @classmethod
    def _know_weights(cls, name: str) -> str:
        if name not in WEIGHTED_SUBSCRIPTION_INDEXES:
            raise ValueError(f"must be one of {', '.join(sorted(WEIGHTED_SUBSCRIPTION_INDEXES))}")
        return name

    @field_validator("clause_index")
    @classmethod
    def _know_index(cls, name: str) -> str:
        kind = KINDS["clause_index"]
        entry = kind.indexes.get(name)
        # Partitions are stored in a form that classes of other packages do not have.
        if entry is None or entry.plugin_of:
            raise ValueError(f"must be {kind.limit(name)}")
        return name

    @field_validator("window")
    @classmethod
    def _bound_window(cls, window: WindowSize) -> WindowSize:
        count, duration_ms, most = window.count, window.duration_ms, DEFAULT_LIMITS.window_count_max
        if (count == 0) == (duration_ms == 0):
            raise ValueError("must be a number of messages, or a duration")
        if not 0 <= count <= most:
            raise ValueError(f"must be 1 to {most} messages")
        if not 0 <= duration_ms <= DURATION_MS_MAX:
            raise ValueError(f"must be 1 to {DURATION_MS_MAX} milliseconds")
        return window

    @model_validator(mode="after")
    def _divide(self) -> StreamParameters:
        from streaming.distribution import has_replicas  # noqa: PLC0415 - numpy, which a help does not need
        from streaming.distribution.keywords import HYBRIDS  # noqa: PLC0415
        from streaming.distribution.keywords import PARTITIONS_MAX as REPLICAS_MAX  # noqa: PLC0415

        if has_replicas(self.mechanism):
            limit = f"1 to {REPLICAS_MAX} with the mechanism {self.mechanism}"
            _require(self.partitions <= REPLICAS_MAX, "partitions", self.partitions, limit)
        if self.first_level:
            is_hybrid = self.mechanism in HYBRIDS
            _require(is_hybrid, "first_level", self.first_level, f"0 with the mechanism {self.mechanism}")
            divides = self.partitions % self.first_level == 0
            _require(divides, "first_level", self.first_level, f"a divisor of {self.partitions}")
        return self

    @model_validator(mode="after")
    def _bound_interval(self) -> StreamParameters:
        if self.every_ms is not None:
            shown, most = f"{self.every_ms} ms", DURATION_MS_MAX
            _require(not self.once, "every", shown, "absent with --once")
            _require(1 <= self.every_ms <= most, "every", shown, f"1 to {most} ms")
        return self

    def require_folders(self, spark: SparkSession) -> None:
        """Require that the folders of the feeds exist, and the memory folder too if the job runs locally.

        Raises
        ------
        ParameterError
            If one of them does not exist, or the memory folder is not writable.
        """
        from feeds.cluster import is_local  # noqa: PLC0415
        from feeds.storage import Stored  # noqa: PLC0415

        for name, where in self.feeds:
            if not isinstance(where, RedisAddress):
                _require(Stored(spark, where).is_folder(), name, where, "an existing folder")
        if is_local(str(spark.sparkContext.master)):
            _require(self.memory.is_dir(), "memory", self.memory, "an existing folder")
            is_writable = os.access(self.memory, os.W_OK)
            _require(is_writable, "memory", self.memory, "a writable folder")


def _require(condition: bool, name: str, value: object, limit: str) -> None:  # noqa: FBT001
    if not condition:
        raise ParameterError(f"{name} is {value}, must be {limit}")
