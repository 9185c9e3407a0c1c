"""The plan of a job: what is decided when it begins, and holds whenever it goes on."""

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
from safe_region.frame import Area, Frame
from streaming.distribution import Distribution, distribution_of
from streaming.own_folder import own_folder
from streaming.partition.options import engine_options
from streaming.partition.window import WindowSize
from streaming.program import program_digest

_FORMAT = 3
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
)
"""What whoever starts the job says, and may not say otherwise later."""
REBALANCED = (
    "mechanism",
    "partitions",
    "first_level",
    "subscription_index",
    "clause_index",
    "stationary_buffer",
)
"""What may be said otherwise when the job is rebalanced."""


class PlanError(Exception):
    """A job cannot go on as it is asked to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided once.

    Parameters
    ----------
    run
        A name of its own, for what lies in memory; a secret until it does.
    area, window
        What subscriptions and messages are about.
    mechanism, partitions, distribution
        How subscriptions are divided; the last is what the mechanism keeps.
    keys
        For each partition one that Spark sends to a task of its own.
    subscription_index
        Its name.
    idf
        The file with weights of keywords; empty for none.
    clause_index
        The name of that of boolean subscriptions.
    stationary_buffer
        How much buffers of top-k subscriptions hold beyond their results (`StationaryPolicy`).
    first_level
        Of the hybrids: parts of the first division; 0 if it was not said.
    moved
        The folder of what partitions begin with, behind a rebalancing; empty if there was none, or all
        have begun.
    retired
        Keys of before a rebalancing.
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
    moved: str = ""
    retired: tuple[int, ...] = ()

    @classmethod
    def begin(cls, distribution: Distribution, **chosen: Any) -> Self:  # noqa: ANN401
        """Return the plan of a new run."""
        return cls(run=f"nearcast-{secrets.token_hex(16)}", distribution=distribution.encoded(), **chosen)

    def folder(self, memory: Path) -> Path:
        """Return where in memory the job's indexes lie: those that this very program has made.

        Only who runs the job may look: they have places and words, and what is read is trusted.

        Raises
        ------
        OwnFolderError
            If it is not this user's alone: another user of the machine may have made it.
        """
        memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own_folder(own_folder(memory / self.run) / program_digest())

    @property
    def frame(self) -> Frame:
        """The projection of the area."""
        return Frame.of(self.area)

    def make_distribution(self) -> Distribution:
        """Return how subscriptions are divided."""
        return distribution_of(self.mechanism, self.partitions, self.distribution)

    @property
    def square(self) -> Square:
        """Where most things are."""
        low = self.frame.project(self.area.lon_min, self.area.lat_min)
        return Square(0.0, 0.0, max(-low.x_m, -low.y_m))

    def engine_options(self) -> EngineOptions:
        """Return how the engine of a partition works."""
        names = self.subscription_index, self.clause_index
        policy = StationaryPolicy(self.stationary_buffer)
        return engine_options(self.square, self.frame.maxdist_m, *names, policy=policy)

    def as_json(self) -> bytes:
        """Return what a file keeps."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, where: object) -> Self:
        """Read what `as_json` wrote.

        Parameters
        ----------
        where
            What an error names.

        Raises
        ------
        PlanError
            If it is no plan of this version.
        """
        try:
            kept = json.loads(data)
            form = kept.pop("format")
            if form != _FORMAT:
                raise PlanError(f"{where} is of format {form}, must be {_FORMAT}: start the job again")
            kept |= {
                "area": Area(*kept["area"]),
                "window": WindowSize(**kept["window"]),
                "keys": tuple(kept["keys"]),
                "retired": tuple(kept["retired"]),
            }
            return cls(**{one.name: kept[one.name] for one in fields(cls)})
        except (ValueError, KeyError, TypeError) as error:
            raise PlanError(f"{where} is no plan of a job: {error!r}") from error

    def require_same(self, **chosen: Any) -> None:  # noqa: ANN401
        """Require that a job goes on as it began.

        Raises
        ------
        PlanError
            Naming what is asked for otherwise.
        """
        for name in _CHOSEN:
            before = getattr(self, name)
            if name in chosen and chosen[name] != before:
                hint = ", or else --rebalance is needed" if name in REBALANCED else ""
                raise PlanError(
                    f"{name} is {chosen[name]}, must be {before}, as when the job began{hint}"
                )
