"""Jobs on three hosts, struck by faults, and their results after every batch."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.cluster.audit import audited
from tests.cluster.cluster_job import ClusterJob, JobError, Size
from tests.cluster.faults import Strike
from tests.cluster.hosts import HostError, Hosts
from tests.cluster.spark_cluster import SparkCluster

HOSTS = 3
_CORES = 2
_CORES_MAX = 3
"""Of one driver's executors, an executor a host: another driver may be started while the first still has
them, for which workers have the memory of two.
"""
_BETWEEN = 2
"""Batches between two faults."""
_AHEAD = 6
"""Files that a driver has to read at least, with `--once`, when a fault strikes it."""

Progress = Callable[[str, int, int], None]


class What(NamedTuple):
    """What is done to each job.

    Parameters
    ----------
    size
        Of the job.
    faults
        Names of `faults.FAULTS`.
    batches
        How many there are at least, besides the first, without a fault.
    times
        How often each fault strikes a job that reads with `--once`, and one that runs on.
    sample
        Results compared behind each batch.
    seed
        Decides all but the timing.
    keep
        Whether folders stay, with all logs.
    """

    size: Size
    faults: tuple[str, ...]
    batches: int
    times: int
    sample: int
    seed: int
    keep: bool


@dataclass
class Outcome:
    """What became of one job.

    Parameters
    ----------
    mechanism
        How its subscriptions were divided.
    faults
        What was done to it, and the seconds to the next batch each time: with `--once`, then without.
    """

    mechanism: str
    faults: dict[str, list[float]] = field(default_factory=dict)
    batches: int = 0
    results: int = 0
    changes: int = 0
    evaluated_steady: float = 0.0
    """The median share of subscriptions that owners evaluated in a batch, without a fault."""
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """A line about it."""
        times = (
            f"{fault} {', '.join(f'{one:.0f}' for one in self.faults[fault])} s" for fault in self.faults
        )
        counts = f"{self.batches:,} batches, {self.results:,} results", f"{len(self.wrong)} wrong"
        return f"{self.mechanism}: {'; '.join((*counts, *times))}; {self.seconds:.0f} s in all"


def measure(mechanism: str, what: What, folder: Path, progress: Progress) -> Outcome:
    """Run one job through faults; return what became of it.

    First it reads with `--once`, in batches of a file each, and each fault strikes so many times; then it
    runs on while files come, and the same faults strike again.

    Parameters
    ----------
    mechanism
        Of the job.
    what
        What is done to it.
    folder
        New; shared by all hosts.
    """
    outcome = Outcome(mechanism)
    began_s = time.monotonic()
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(HOSTS, folder / "hosts"))
        cluster = stack.enter_context(SparkCluster(hosts, folder / "logs", cores=_CORES))
        options = [f"--conf=spark.cores.max={_CORES_MAX}"]
        job = ClusterJob(hosts, cluster, folder / "shared", mechanism, what.size, what.seed, options)
        stack.callback(job.close)
        try:
            _run(job, outcome, what, progress)
        except (JobError, HostError, TimeoutError, subprocess.TimeoutExpired) as error:
            outcome.wrong.append(repr(error))
    progress("audit", 0, 1)
    found = audited(job.out, what.size.window, what.sample, what.seed)
    steady = sorted(found.evaluated[2 : 2 + what.batches])
    outcome.evaluated_steady = steady[len(steady) // 2] if steady else 0.0
    outcome.batches, outcome.results, outcome.changes = found.batches, found.results, found.changes
    outcome.wrong += found.wrong
    outcome.seconds = time.monotonic() - began_s
    return outcome


def _run(job: ClusterJob, outcome: Outcome, what: What, progress: Progress) -> None:
    strike = Strike(job, what.seed)
    faults = what.faults * what.times

    def inject(number: int, fault: str, how: str) -> None:
        progress(f"{outcome.mechanism}, {how}: {fault}", number, 2 * len(faults))
        outcome.faults.setdefault(fault, []).append(round(strike.inject(fault), 1))

    progress(f"{outcome.mechanism}, --once", 0, 2 * len(faults))
    job.once = True
    job.add(what.batches + _AHEAD * len(faults))
    job.start(strike.driver_host)
    job.await_read(what.batches)
    for number, fault in enumerate(faults):
        _require_ahead(strike)
        inject(number, fault, "--once")
    _require_ended(job)
    if job.read_count() != job.message_files:
        outcome.wrong.append(f"--once has read {job.read_count()} of {job.message_files} files")

    job.once = False
    job.add(_BETWEEN)
    job.start(strike.driver_host)
    job.await_read(job.message_files - 1)
    for number, fault in enumerate(faults, len(faults)):
        job.add(_BETWEEN + 2)
        inject(number, fault, "running on")
        job.add(_BETWEEN)
        job.await_read(job.message_files - 1)
    job.await_read(job.message_files)
    job.stop()


def _require_ahead(strike: Strike) -> None:
    """Let a driver that reads what there is have enough to read while a fault strikes."""
    job = strike.job
    if job.ahead < _AHEAD:
        _require_ended(job)
        job.add(2 * _AHEAD)
        job.start(strike.driver_host)
        job.await_read(job.read_count() + 1)


def _require_ended(job: ClusterJob) -> None:
    """Wait until a driver has read what there was."""
    if job.wait():
        raise JobError(f"--once: {job.last_words()}")
