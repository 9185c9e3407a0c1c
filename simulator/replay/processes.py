"""A replay in one process or several: devices are divided by a hash of their ids, reports are merged."""

from __future__ import annotations

import asyncio
import multiprocessing
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from nearcast import NearcastError
from simulator.errors import SimulationError
from simulator.replay.device_log import DeviceLog
from simulator.replay.lockstep import Failure, Follower, Leader
from simulator.replay.options import PROCESSES_MAX, ReplayError, ReplayOptions
from simulator.replay.recording import Recording, Share
from simulator.replay.replay import Progress, Replay
from simulator.replay.report import ReplayReport
from simulator.replay.track import Track

_STOP_S = 10.0
"""The time after which a process that has not ended is killed."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A completed replay.

    Parameters
    ----------
    report
        The report of all processes.
    track, range_track
        The paths of devices of the first process, with regions of top-k subscriptions and of ranges.
    log
        Reports and held objects of devices of the first process.
    """

    report: ReplayReport
    track: Track
    range_track: Track
    log: DeviceLog


def run(
    folder: Path, options: ReplayOptions, process_count: int = 1, progress: Progress | None = None
) -> Replayed:
    """Replay a folder against a server.

    Parameters
    ----------
    folder
        The folder that `simulate` wrote.
    options
        The options; each process has its own streams.
    process_count
        Processes that the devices are divided over; this one publishes.
    progress
        Called as progress(stage, done, total).

    Raises
    ------
    nearcast.NearcastError
        If the server cannot be reached or refuses something.
    ReplayError
        If the server does not fit the simulation, or another process has failed.
    SimulationError
        If the folder is no simulation, or a table cannot be read.
    """
    if not 1 <= process_count <= PROCESSES_MAX:
        raise ReplayError(f"processes is {process_count}, must be within 1..{PROCESSES_MAX}")
    recording = Recording(folder, Share(0, process_count))
    if process_count == 1:
        replay = Replay(recording, options, progress)
        return Replayed(asyncio.run(replay.run()), replay.track, replay.range_track, replay.log)
    with ExitStack() as stack:
        leader = Leader(
            [
                _started(stack, folder, options, Share(index, process_count))
                for index in range(1, process_count)
            ]
        )
        replay = Replay(recording, options, progress, leader)
        report = asyncio.run(_led(replay, leader))
        return Replayed(report, replay.track, replay.range_track, replay.log)


async def _led(replay: Replay, leader: Leader) -> ReplayReport:
    report = await replay.run()
    for other in await leader.reports():
        report.merge(other)
    return report


def _started(stack: ExitStack, folder: Path, options: ReplayOptions, share: Share) -> Connection:
    """Start a process, which ends with the stack. A fork would copy gRPC threads that do not continue."""
    context = multiprocessing.get_context("spawn")
    mine, others = context.Pipe()
    process = context.Process(
        target=_follow, args=(others, folder, options, share), name=f"replay-{share.part}", daemon=True
    )

    def end() -> None:
        mine.close()
        process.join(_STOP_S)
        if process.is_alive():
            process.kill()
            process.join()

    process.start()
    others.close()
    stack.callback(end)
    return mine


def _follow(line: Connection, folder: Path, options: ReplayOptions, share: Share) -> None:
    """Replay a share of the devices, with the changes that the publishing process sends."""
    try:
        replay = Replay(Recording(folder, share), options, None, Follower(line))
        found: ReplayReport | Failure = asyncio.run(replay.run())
    except (NearcastError, ReplayError, SimulationError) as error:
        found = Failure(str(error))
    try:
        line.send(found)
    except OSError:
        return  # the leader no longer waits for the result
