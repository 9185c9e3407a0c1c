"""Jobs side by side, each on hosts of its own: they wait more than they compute."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp

import click

from cli.progress import bars
from tests.cluster.run import Outcome, What, measure
from tests.cluster.simulation import SIMULATION, measure_simulation

_DEVICES, _SECONDS = 2_000, 300
"""Of the simulation."""
_FOLDERS = Path("/var/tmp")  # noqa: S108 - each job has a folder of its own
"""Not /tmp, of which each host has its own."""


def measured(mechanisms: Sequence[str], what: What, jobs: int) -> list[Outcome]:
    """Run a job for each mechanism, so many at a time; return what became of them."""
    _exit_on_term()
    with ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_exit_on_term, max_tasks_per_child=1
    ) as pool:
        return list(pool.map(_measured, mechanisms, repeat(what)))


def _measured(mechanism: str, what: What) -> Outcome:
    """Run a job, or the simulator, on hosts of its own."""
    folder = Path(mkdtemp(prefix="nearcast-cluster-", dir=_FOLDERS))
    folder.chmod(0o755)
    with bars() as progress:
        if mechanism == SIMULATION:
            outcome = measure_simulation(folder, _DEVICES, _SECONDS, what.seed, progress)
        else:
            outcome = measure(mechanism, what, folder, progress)
    click.echo(outcome.summary, err=True)
    if what.keep or outcome.wrong:
        click.echo(f"{mechanism}: {folder}", err=True)
    else:
        shutil.rmtree(folder)
    return outcome


def _exit_on_term() -> None:
    """Let SIGTERM end this process as Ctrl-C does: hosts are removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
