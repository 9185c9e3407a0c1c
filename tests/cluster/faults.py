"""Faults of a cluster: each leaves a job that goes on, and says how long it took to its next batch."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable

from tests.cluster.cluster_job import ClusterJob, JobError

_CUT_S = 25.0
"""Longer than the job's network timeout."""
_MOMENT_S = 2.0
_TAKEN_OVER_S = 120.0
"""A driver that goes on notices by then that there is another."""
MASTER = 0
"""The host of Spark's master, which no fault strikes: it is one of Spark's, not of the job's."""
DRIVERS = (1, 2)
"""Hosts on which drivers run, in turn."""
TAKEN_OVER = "another driver has claimed this checkpoint"

Fault = Callable[["Strike"], None]


class Strike:
    """What a fault is done to.

    Parameters
    ----------
    job
        The job; its driver runs.
    seed
        Decides the moment, and the host if there is a choice.
    """

    def __init__(self, job: ClusterJob, seed: int) -> None:
        self.job, self.rng = job, random.Random(seed)
        self.driver_host = DRIVERS[0]

    @property
    def other_host(self) -> int:
        """The host on which there is no driver."""
        return next(host for host in DRIVERS if host != self.driver_host)

    def inject(self, fault: str) -> float:
        """Do it while a batch is under way; return the seconds to the next batch that is complete."""
        time.sleep(self.rng.uniform(0.0, _MOMENT_S))
        before = self.job.read_count()
        began_s = time.monotonic()
        FAULTS[fault](self)
        self.job.await_read(min(before + 1, self.job.message_files))
        return time.monotonic() - began_s

    def move_driver(self) -> None:
        """Start a driver on the other host."""
        self.driver_host = self.other_host
        self.job.start(self.driver_host)

    def require_over(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Require that an older driver ends with an error: it has lost its executors, or its job."""
        try:
            status = process.wait(_TAKEN_OVER_S)
        except subprocess.TimeoutExpired:
            raise JobError(f"the older driver goes on: {self.job.last_words(number)}") from None
        if not status:
            raise JobError(f"the older driver has ended without an error: {self.job.last_words(number)}")

    def require_taken_over(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Require that an older driver ends, and says why."""
        self.require_over(process, number)
        if TAKEN_OVER not in (words := self.job.last_words(number)):
            raise JobError(f"the older driver has ended for another reason: {words}")


def host_killed(strike: Strike) -> None:
    """Kill all that runs on a host that has neither driver nor master; its worker starts later."""
    number = strike.other_host
    strike.job.hosts[number].kill()
    time.sleep(1.0)
    strike.job.cluster.start_worker(number)


def cable_cut(strike: Strike) -> None:
    """Unplug a host until it is lost, and plug it in again."""
    number = strike.other_host
    host = strike.job.hosts[number]
    host.cut()
    time.sleep(_CUT_S)
    host.mend()
    strike.job.cluster.ensure_worker(number)


def memory_emptied(strike: Strike) -> None:
    """Remove what engines have in the memory of a host, under their feet."""
    strike.job.hosts[strike.rng.randrange(len(strike.job.hosts))].forget()


def driver_killed(strike: Strike) -> None:
    """Kill the driver, and start another on another host."""
    strike.job.kill()
    strike.move_driver()


def driver_paused(strike: Strike) -> None:
    """Stop the driver where it is, start another, then let the first go on."""
    strike.job.pause(stopped=True)
    strike.move_driver()
    strike.job.await_read(min(strike.job.read_count() + 1, strike.job.message_files))
    strike.job.resume_older()
    strike.require_taken_over(strike.job.older(), strike.job.driver_count - 2)


def driver_cut_off(strike: Strike) -> None:
    """Unplug the driver's host, start another driver, then plug it in again."""
    number = strike.driver_host
    strike.job.hosts[number].cut()
    strike.move_driver()
    strike.job.await_read(min(strike.job.read_count() + 1, strike.job.message_files))
    strike.job.hosts[number].mend()
    strike.require_over(strike.job.older(), strike.job.driver_count - 2)
    strike.job.cluster.ensure_worker(number)


FAULTS: dict[str, Fault] = {
    "host killed": host_killed,
    "cable cut": cable_cut,
    "memory emptied": memory_emptied,
    "driver killed": driver_killed,
    "driver paused": driver_paused,
    "driver cut off": driver_cut_off,
}
