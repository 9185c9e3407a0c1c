"""A job that is run until somebody stops it: it divides itself again when partitions differ too much.

Skype watches its bolts and splits those that are overloaded (skype.txt section 7.4). Here loads of
partitions are watched batch by batch; the query is stopped, the job rebalanced (`rebalance`) and the
query started again, in one process. Results do not change by it. Somebody may also ask for it, by a file
in the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

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
"""A partition that takes so many times the mean is overloaded."""
OVERLOADED_BATCHES = 10
"""So many batches one after the other."""
PAUSE_S = 3600.0
"""Between two rebalancings that nobody has asked for."""
_LOAD_MIN_US = 5_000
"""With less work than that on average, differences are noise."""
_POLL_S = 0.2
_REQUEST_FILE = "rebalance-requested"
_LOOKED_S = 2.0
"""How often the job looks whether somebody asks, or has taken it over."""
_FIXED = "hashing"
"""The mechanism whose division does not follow from who subscribes."""


@dataclass
class LoadWatch:
    """Says when partitions differ too much.

    Parameters
    ----------
    mechanism
        Of the job.
    clock
        Seconds.
    """

    mechanism: str
    clock: Callable[[], float] = time.monotonic
    _noted: int = 0
    _overloaded: int = 0
    _is_requested: bool = False
    _not_before_s: float = field(default=float("-inf"))

    def note(self, batch: Batch) -> None:
        """Note a batch."""
        self._noted += 1
        loads = batch.loads_us
        mean = sum(loads) / len(loads) if loads else 0.0
        if mean < _LOAD_MIN_US:
            return  # it had hardly anything to do
        self._overloaded = self._overloaded + 1 if max(loads) > OVERLOAD * mean else 0

    def ask(self) -> None:
        """Note that somebody wants the job to be divided again, whatever its loads."""
        self._is_requested = True

    def is_due(self) -> bool:
        """Whether the job is to be divided again."""
        if self._is_requested and self._noted:
            return True
        is_allowed = self.mechanism != _FIXED and self.clock() >= self._not_before_s
        return is_allowed and self._overloaded >= OVERLOADED_BATCHES

    def note_rebalanced(self) -> None:
        """Note that the job was divided again."""
        self._noted = self._overloaded = 0
        self._is_requested = False
        self._not_before_s = self.clock() + PAUSE_S


@dataclass(frozen=True, slots=True)
class Listener:
    """What is told of a job that runs."""

    on_batch: Callable[[Batch], None]
    on_compiling: Report
    on_rebalanced: Callable[[Rebalanced, float], None]
    """What was done, and the seconds from the last batch before to the query that goes on."""
    on_wait: Callable[[], None] = lambda: None
    """Called several times a second."""
    on_folders: Callable[[str], None] = lambda _text: None
    """Called when a folder of the feeds has gone, and when all are there again."""
    on_query: Callable[[StreamingQuery], None] = lambda _query: None
    """Called with each query that is started."""


def ask_to_rebalance(checkpoint: Stored) -> None:
    """Ask a job to divide itself again, behind its next batch; one that does not run, when it is started.

    Raises
    ------
    PlanError
        If there is no job, or its division does not follow from who subscribes.
    """
    plan = read_plan(checkpoint)
    if plan.mechanism == _FIXED:
        raise PlanError(
            f"the job divides by {_FIXED}, which is the same for whoever subscribes; stop it and "
            "start it with --rebalance and another --mechanism or number of --partitions"
        )
    (checkpoint / _REQUEST_FILE).replace(b"")


class _Folders:
    """Says when a folder of the feeds has gone, which for Spark is an empty one, and when it is back."""

    def __init__(
        self, parameters: StreamParameters, spark: SparkSession, on_folders: Callable[[str], None]
    ) -> None:
        self._parameters, self._spark, self._print = parameters, spark, on_folders
        self._missing = ""

    def are_there(self) -> bool:
        """Whether all are there; of a job that reads what there is they must be.

        Raises
        ------
        ParameterError
            If one is not, of such a job.
        """
        if self._parameters.once:
            self._parameters.require_folders(self._spark)
            return True
        before, self._missing = self._missing, ""
        try:
            self._parameters.require_folders(self._spark)
        except ParameterError as error:
            self._missing = str(error)
        if self._missing and not before:
            self._print(f"{self._missing}: waiting for it")
        elif before and not self._missing:
            self._print("all folders are there again")
        return not self._missing

    def wait(self, stops: Callable[[], bool]) -> None:
        """Wait until they are, or the job is to stop."""
        while not stops() and not self.are_there():
            time.sleep(_LOOKED_S)


class _Lookout:
    """Looks now and then at what others leave in the checkpoint, and for the folders of feeds."""

    def __init__(self, checkpoint: Stored, watch: LoadWatch, claim: Claim, folders: _Folders) -> None:
        self._request = checkpoint / _REQUEST_FILE
        self._watch, self._claim, self._folders = watch, claim, folders
        self._next_s = time.monotonic() + _LOOKED_S

    def look(self) -> None:
        """Do so.

        Raises
        ------
        TakenOverError
            If another driver has the job.
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
    """Run a job until it ends or is to stop; return why it has failed, if it has.

    Raises
    ------
    ParameterError, PlanError, IdfError, ClusterError
        As `start` and `rebalance` do; ParameterError also if a folder goes of a job that reads what there
        is. A job that runs on waits until it is back.
    TakenOverError
        If another driver has the job.
    """
    watch = watch or LoadWatch(parameters.mechanism)
    checkpoint = Stored(spark, parameters.checkpoint)
    folders = _Folders(parameters, spark, listener.on_folders)

    def noted(batch: Batch) -> None:
        watch.note(batch)
        listener.on_batch(batch)

    while not stops():
        claim = Claim(checkpoint)
        query = start(parameters, spark, noted, listener.on_compiling, claim)
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
        if error is not None and not folders.are_there():
            folders.wait(stops)
            continue
        if error is not None or stops() or not watch.is_due():
            return error
        began_s = time.monotonic()
        done = rebalance(parameters, spark, listener.on_batch)
        watch.note_rebalanced()
        if done is not None:
            listener.on_rebalanced(done, time.monotonic() - began_s)
    return None
