"""The plan of a job: the decisions that are made when it is started, and hold whenever it resumes."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from engine import EngineOptions
from engine.options import StationaryPolicy
from index.catalogue import DEFAULT_CLAUSE_INDEX
from index.square import Square
from safe_region.earth.frame import Area, Frame
from streaming.distribution import Distribution, distribution_of
from streaming.own_folder import own_folder
from streaming.partition.options import engine_options
from streaming.program import program_digest
from streaming.window_size import WindowSize

_FORMAT = 4
AHEAD_MS = 24 * 3600 * 1000
"""By how much messages may be ahead of the clock, by default."""
_CHOSEN = (
    "area",
    "window",
    "mechanism",
    "partitions",
    "first_level",
    "subscription_index",
    "clause_index",
    "stationary_buffer",
    "idf",
    "ahead_ms",
)
"""The settings that the user chooses when the job is started, and may not change later."""
REBALANCED = (
    "mechanism",
    "partitions",
    "first_level",
    "subscription_index",
    "clause_index",
    "stationary_buffer",
)
"""The settings that the user may change when the job is rebalanced."""


class PlanError(Exception):
    """A job cannot run with the requested settings."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings that are decided once.

    Parameters
    ----------
    run
        A unique name of the run, for its files in memory; secret until these exist.
    area, window
        The area and the window of the subscriptions and messages.
    mechanism, partitions, distribution
        How subscriptions are divided; `distribution` is the encoded state of the mechanism.
    keys
        For each partition, a key that Spark sends to a task of its own.
    subscription_index
        The name of the index of top-k subscriptions.
    idf
        The file with weights of keywords; empty for none.
    clause_index
        The name of the index of boolean subscriptions.
    stationary_buffer
        How much the buffers of top-k subscriptions hold beyond their results (`StationaryPolicy`).
    first_level
        Of the hybrids: the number of parts of the first division; 0 if it was not given.
    ahead_ms
        By how much the time of a message may be later than the start of the batch that reads it.
    moved
        The folder with the initial state of partitions after a rebalancing; empty if there was no
        rebalancing, or all partitions have started.
    retired
        The keys from before a rebalancing.
    """

    run: str
    area: Area
    window: WindowSize
    mechanism: str
    partitions: int
    distribution: Any
    keys: tuple[int, ...]
    subscription_index: str
    idf: str = ""
    clause_index: str = DEFAULT_CLAUSE_INDEX
    stationary_buffer: str = StationaryPolicy.COST.value
    first_level: int = 0
    ahead_ms: int = AHEAD_MS
    moved: str = ""
    retired: tuple[int, ...] = ()

    @classmethod
    def begin(cls, distribution: Distribution, **chosen: Any) -> Self:  # noqa: ANN401
        """Return the plan of a new run."""
        return cls(run=f"nearcast-{secrets.token_hex(16)}", distribution=distribution.encoded(), **chosen)

    def folder(self, memory: Path) -> Path:
        """Return the folder in memory for the indexes that this version of the program writes.

        Only the user who runs the job may read it: the indexes contain positions and words, and data read
        from it is trusted.

        Raises
        ------
        OwnFolderError
            If the folder is not private to this user: another user of the machine may have made it.
        """
        memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own_folder(own_folder(memory / self.run) / program_digest())

    @property
    def frame(self) -> Frame:
        """The projection of the area."""
        return Frame.of(self.area)

    def make_distribution(self) -> Distribution:
        """Return the distribution of subscriptions among partitions."""
        return distribution_of(self.mechanism, self.partitions, self.distribution)

    @property
    def square(self) -> Square:
        """The square in which most objects and subscriptions are."""
        low = self.frame.project(self.area.lon_min, self.area.lat_min)
        return Square(0.0, 0.0, max(-low.x_m, -low.y_m))

    def engine_options(self) -> EngineOptions:
        """Return the options for the engine of a partition."""
        names = self.subscription_index, self.clause_index
        policy = StationaryPolicy(self.stationary_buffer)
        return engine_options(self.square, self.frame.maxdist_m, *names, policy=policy)

    def as_json(self) -> bytes:
        """Return the plan as the contents of a file."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, where: object) -> Self:
        """Read a plan that `as_json` wrote.

        Parameters
        ----------
        data
            The content of the file.
        where
            The name of the file, for error messages.

        Raises
        ------
        PlanError
            If the data is not a plan of this version.
        """
        try:
            kept = json.loads(data)
            form = kept.pop("format")
            if form != _FORMAT:
                raise PlanError(
                    f"{where} has the format {form}, must have {_FORMAT}: start the job again"
                )
            kept = {"ahead_ms": AHEAD_MS} | kept  # which plans of earlier versions lack
            kept |= {
                "area": Area(*kept["area"]),
                "window": WindowSize(**kept["window"]),
                "keys": tuple(kept["keys"]),
                "retired": tuple(kept["retired"]),
            }
            return cls(**{one.name: kept[one.name] for one in fields(cls)})
        except (ValueError, KeyError, TypeError) as error:
            raise PlanError(f"{where} is not the plan of a job: {error!r}") from error

    def require_same(self, **chosen: Any) -> None:  # noqa: ANN401
        """Require that a job resumes with the settings with which it was started.

        Raises
        ------
        PlanError
            If a setting differs; the message names it.
        """
        for name in _CHOSEN:
            before = getattr(self, name)
            if name in chosen and chosen[name] != before:
                hint = ", or use --rebalance" if name in REBALANCED else ""
                raise PlanError(
                    f"{name} is {chosen[name]}, must be {before}, as at the start of the job{hint}"
                )
