"""A job that runs until it is stopped, and is rebalanced when the loads of its partitions diverge.

Skype monitors its bolts and splits those that are overloaded (skype.txt section 7.4). Here the loads of
partitions are monitored batch by batch. The query is stopped, the job rebalanced (`rebalance`) and the
query started again, in one process. Results do not change by it. A user may also request a rebalancing,
by a file in the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from feeds.causes import cause_of
from feeds.storage import Stored
from safe_region.jit.ahead import Report
from streaming.claim import Claim
from streaming.job import start
from streaming.parameters import ParameterError, StreamParameters
from streaming.plan import PlanError
from streaming.planning import read_plan
from streaming.rebalance import Rebalanced, rebalance
from streaming.result.sink import Batch

OVERLOAD = 2.0
"""A partition whose load is more than this multiple of the mean is overloaded."""
OVERLOADED_BATCHES = 10
"""The number of consecutive overloaded batches that makes a rebalancing due."""
PAUSE_S = 3600.0
"""The minimum time between two rebalancings that no user has requested."""
_LOAD_MIN_US = 5_000
"""Below this mean load, differences are noise."""
_POLL_S = 0.2
_REQUEST_FILE = "rebalance-requested"
_LOOKED_S = 2.0
"""The interval at which the job checks for a request, and whether another driver has taken it over."""
_FIXED = "hashing"
"""The mechanism whose division does not depend on the subscriptions."""


@dataclass
class LoadWatch:
    """Decides whether the loads of partitions differ too much.

    Parameters
    ----------
    mechanism
        The mechanism of the job.
    clock
        Returns seconds.
    """

    mechanism: str
    clock: Callable[[], float] = time.monotonic
    _noted: int = 0
    _overloaded: int = 0
    _is_requested: bool = False
    _not_before_s: float = field(default=float("-inf"))

    def note(self, batch: Batch) -> None:
        """Record a batch."""
        self._noted += 1
        loads = batch.loads_us
        mean = sum(loads) / len(loads) if loads else 0.0
        if mean < _LOAD_MIN_US:
            return  # it had hardly anything to do
        self._overloaded = self._overloaded + 1 if max(loads) > OVERLOAD * mean else 0

    def ask(self) -> None:
        """Record a request to rebalance the job, regardless of its loads."""
        self._is_requested = True

    def is_due(self) -> bool:
        """Whether the job is to be rebalanced."""
        if self._is_requested and self._noted:
            return True
        is_allowed = self.mechanism != _FIXED and self.clock() >= self._not_before_s
        return is_allowed and self._overloaded >= OVERLOADED_BATCHES

    def note_rebalanced(self) -> None:
        """Record that the job was rebalanced."""
        self._noted = self._overloaded = 0
        self._is_requested = False
        self._not_before_s = self.clock() + PAUSE_S


@dataclass(frozen=True, slots=True)
class Listener:
    """The callbacks of a running job."""

    on_batch: Callable[[Batch], None]
    on_compiling: Report
    on_rebalanced: Callable[[Rebalanced, float], None]
    """Called with the result, and the seconds from the last batch before to the query that continues."""
    on_wait: Callable[[], None] = lambda: None
    """Called several times a second."""
    on_notice: Callable[[str], None] = lambda _text: None
    """Called when a folder of the feeds is missing, when all exist again, and with the error of a query
    that is started again."""
    on_query: Callable[[StreamingQuery], None] = lambda _query: None
    """Called with each query that is started."""


def ask_to_rebalance(checkpoint: Stored) -> None:
    """Request a rebalancing of a job, once it has completed a batch since it was started or rebalanced.

    Raises
    ------
    PlanError
        If there is no job, or its division does not depend on the subscriptions.
    """
    plan = read_plan(checkpoint)
    if plan.mechanism == _FIXED:
        raise PlanError(
            f"the job divides by {_FIXED}, which does not depend on subscriptions; stop it, and start "
            "it with --rebalance and another --mechanism or number of --partitions"
        )
    (checkpoint / _REQUEST_FILE).replace(b"")


class Folders:
    """Reports when a folder of the feeds is missing, which Spark reads as empty, and when it is back."""

    def __init__(
        self, parameters: StreamParameters, spark: SparkSession, on_notice: Callable[[str], None]
    ) -> None:
        self._parameters, self._spark, self._print = parameters, spark, on_notice
        self._missing = ""
        self._was_missing = False

    def are_there(self) -> bool:
        """Whether all folders exist; a job that reads only the present rows requires that they do.

        Raises
        ------
        ParameterError
            If such a job has a folder that does not exist.
        """
        if self._parameters.once:
            self._parameters.require_folders(self._spark)
            return True
        before, self._missing = self._missing, ""
        try:
            self._parameters.require_folders(self._spark)
        except ParameterError as error:
            self._missing = str(error)
        self._was_missing |= bool(self._missing)
        if self._missing and not before:
            self._print(f"{self._missing}: waiting for it")
        elif before and not self._missing:
            self._print("all folders are available again")
        return not self._missing

    def note_batch(self) -> None:
        """Record a batch: a query that fails later has listed the folders after it."""
        self._was_missing = False

    def explain_failure(self) -> bool:
        """Whether a folder is missing, or was at a look after the last batch; each absence explains once.

        A query that has listed a folder before it disappeared fails when it reads the files, which may be
        after the folder is back.
        """
        self.are_there()
        was_missing, self._was_missing = self._was_missing, False
        return was_missing

    def wait(self, stops: Callable[[], bool], claim: Claim) -> None:
        """Wait until the folders exist, or the job is to stop.

        Raises
        ------
        TakenOverError
            If another driver has taken the job over.
        """
        while not stops():
            claim.require()
            if self.are_there():
                return
            time.sleep(_LOOKED_S)


class _Lookout:
    """Checks periodically for files that others leave in the checkpoint, and for the folders of feeds."""

    def __init__(self, checkpoint: Stored, watch: LoadWatch, claim: Claim, folders: Folders) -> None:
        self._request = checkpoint / _REQUEST_FILE
        self._watch, self._claim, self._folders = watch, claim, folders
        self._next_s = time.monotonic() + _LOOKED_S

    def look(self) -> None:
        """Check, if the interval has passed.

        Raises
        ------
        TakenOverError
            If another driver has taken the job over.
        """
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _LOOKED_S
        self._claim.require()
        self._folders.are_there()
        if self._request.exists():
            self._request.remove()
            self._watch.ask()


def serve(
    parameters: StreamParameters,
    spark: SparkSession,
    stops: Callable[[], bool],
    listener: Listener,
    watch: LoadWatch | None = None,
) -> BaseException | None:
    """Run a job until it ends or is to stop; return the error with which it failed, if it has.

    Raises
    ------
    ParameterError, PlanError, IdfError, ClusterError
        As `start` and `rebalance` do. A job that reads only the present rows also raises ParameterError
        if a folder disappears; a job that runs on waits until the folder is back.
    TakenOverError
        If another driver has taken the job over.
    """
    watch = watch or LoadWatch(parameters.mechanism)
    checkpoint = Stored(spark, parameters.checkpoint)
    folders = Folders(parameters, spark, listener.on_notice)
    claim = Claim(checkpoint)

    def noted(batch: Batch) -> None:
        folders.note_batch()
        watch.note(batch)
        listener.on_batch(batch)

    while not stops():
        query = start(parameters, spark, noted, listener.on_compiling, claim, listener.on_notice)
        lookout = _Lookout(checkpoint, watch, claim, folders)
        listener.on_query(query)
        try:
            while query.isActive and not stops() and not watch.is_due():
                listener.on_wait()
                lookout.look()
                time.sleep(_POLL_S)
        finally:
            query.stop()
        error: BaseException | None = query.exception()
        if error is not None and folders.explain_failure():
            listener.on_notice(f"the query has failed, and is started again: {cause_of(error)}")
            folders.wait(stops, claim)
            continue
        if error is not None or stops() or not watch.is_due():
            return error
        began_s = time.monotonic()
        done = rebalance(parameters, spark, listener.on_batch, claim)
        watch.note_rebalanced()
        if done is not None:
            listener.on_rebalanced(done, time.monotonic() - began_s)
    return None
