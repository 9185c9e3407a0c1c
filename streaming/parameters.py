"""The parameters of a job, checked before any work starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from engine.options import StationaryPolicy
from feeds.cluster import is_local
from feeds.redis import RedisAddress
from feeds.storage import Stored, Where
from index.catalogue import (
    DEFAULT_CLAUSE_INDEX,
    DEFAULT_SUBSCRIPTION_INDEX,
    KINDS,
    WEIGHTED_SUBSCRIPTION_INDEXES,
)
from safe_region.earth.frame import Area
from streaming.distribution import MECHANISMS, has_replicas
from streaming.distribution.keywords import HYBRIDS
from streaming.distribution.keywords import PARTITIONS_MAX as REPLICAS_MAX
from streaming.partition.window import WindowSize

PARTITIONS_MAX = 1024
FORMATS = ("parquet", "json")
BUFFERS = tuple(policy.value for policy in StationaryPolicy)
WINDOW_COUNT_MAX = 100_000_000
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder for each job, of its own
_MAX_MS = 366 * 24 * 3600 * 1000


class ParameterError(ValueError):
    """A parameter is outside its limits; the message names it, its value and the limit."""


@dataclass(frozen=True, slots=True)
class StreamParameters:
    """The inputs, settings and outputs of a job.

    Parameters
    ----------
    messages, subscriptions
        The feeds (`feeds.schemas`): folders of files, to which files may be added, or Redis.
    out
        Folder for results.
    checkpoint
        Folder for everything that the job needs to resume. These folders are paths or URIs of any file
        system that Spark has.
    area
        The area of all positions, in degrees.
    window
        Which messages count.
    mechanism, partitions
        How subscriptions are divided.
    first_level
        Of the hybrids: how many parts the first division has; 0 for as many as each of them is divided
        into, or fewer.
    subscription_index
        The index that finds the top-k subscriptions that a message affects.
    clause_index
        The index that finds the boolean subscriptions that a message may affect.
    stationary_buffer
        How much the buffers of top-k subscriptions hold: `cost`, or as Skype compares them.
    idf
        File with weights of keywords, for the similarity tfidf.
    format
        Format of the files that are read.
    files_per_batch
        The maximum number of new files of each feed in a batch; of entries in Redis.
    once
        Whether the job ends when it has read all present rows.
    every_ms
        The interval between starts of batches; None to start each batch when the one before is done.
    memory
        Folder on a file system in memory, for engines.
    updates
        Redis address to which changes are also sent.
    """

    messages: Where | RedisAddress
    subscriptions: Where | RedisAddress
    out: Where
    checkpoint: Where
    area: Area
    window: WindowSize
    mechanism: str = "hashing"
    partitions: int = 4
    first_level: int = 0
    subscription_index: str = DEFAULT_SUBSCRIPTION_INDEX
    clause_index: str = DEFAULT_CLAUSE_INDEX
    stationary_buffer: str = StationaryPolicy.COST.value
    idf: Path | None = None
    format: str = "parquet"
    files_per_batch: int = 1000
    once: bool = False
    every_ms: int | None = None
    memory: Path = _MEMORY
    updates: RedisAddress | None = None

    @property
    def feeds(self) -> tuple[tuple[str, Where | RedisAddress], ...]:
        """The feeds by name, in the order in which Spark knows them."""
        return (("messages", self.messages), ("subscriptions", self.subscriptions))

    def __post_init__(self) -> None:
        _require(
            1 <= self.partitions <= PARTITIONS_MAX,
            "partitions",
            self.partitions,
            f"1 to {PARTITIONS_MAX}",
        )
        _one_of("mechanism", self.mechanism, tuple(MECHANISMS))
        if has_replicas(self.mechanism):
            limit = f"1 to {REPLICAS_MAX} with the mechanism {self.mechanism}"
            _require(self.partitions <= REPLICAS_MAX, "partitions", self.partitions, limit)
        if self.first_level:
            is_hybrid = self.mechanism in HYBRIDS
            _require(is_hybrid, "first_level", self.first_level, f"0 with the mechanism {self.mechanism}")
            divides = self.first_level > 0 and self.partitions % self.first_level == 0
            _require(divides, "first_level", self.first_level, f"a divisor of {self.partitions}")
        _require(self.files_per_batch >= 1, "files_per_batch", self.files_per_batch, "at least 1")
        if self.every_ms is not None:
            _require(not self.once, "every", f"{self.every_ms} ms", "absent with --once")
            _require(1 <= self.every_ms <= _MAX_MS, "every", f"{self.every_ms} ms", f"1 to {_MAX_MS} ms")
        _one_of("format", self.format, FORMATS)
        _one_of(
            "subscription_index", self.subscription_index, tuple(sorted(WEIGHTED_SUBSCRIPTION_INDEXES))
        )
        clauses = KINDS["clause_index"]
        entry = clauses.indexes.get(self.clause_index)
        # Partitions are stored in a form that classes of other packages do not have.
        is_known = entry is not None and not entry.plugin_of
        _require(is_known, clauses.setting, self.clause_index, clauses.limit(self.clause_index))
        _one_of("stationary_buffer", self.stationary_buffer, BUFFERS)
        count, duration_ms = self.window.count, self.window.duration_ms
        _require(
            (count == 0) != (duration_ms == 0),
            "window",
            self.window,
            "a number of messages, or a duration",
        )
        _require(0 <= count <= WINDOW_COUNT_MAX, "window", count, f"1 to {WINDOW_COUNT_MAX} messages")
        _require(0 <= duration_ms <= _MAX_MS, "window", duration_ms, f"1 to {_MAX_MS} milliseconds")

    def require_folders(self, spark: SparkSession) -> None:
        """Require that the folders of the feeds exist, and the memory folder too if the job runs locally.

        Raises
        ------
        ParameterError
            If one of them does not exist, or the memory folder is not writable.
        """
        for name, where in self.feeds:
            if not isinstance(where, RedisAddress):
                is_there = Stored(spark, where).is_folder()
                _require(is_there, name, where, "an existing folder")
        if is_local(str(spark.sparkContext.master)):
            _require(self.memory.is_dir(), "memory", self.memory, "an existing folder")
            is_writable = os.access(self.memory, os.W_OK)
            _require(is_writable, "memory", self.memory, "a writable folder")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    _require(value in choices, name, value, f"one of {', '.join(choices)}")


def _require(condition: bool, name: str, value: object, limit: str) -> None:  # noqa: FBT001
    if not condition:
        raise ParameterError(f"{name} is {value}, must be {limit}")
