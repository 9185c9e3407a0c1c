"""The simulator on three hosts: the rows that it writes, beside those that it writes on one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from tests.cluster.hosts import Hosts
from tests.cluster.run import HOSTS, Outcome, Progress
from tests.cluster.spark_cluster import SparkCluster, variables

SIMULATION = "simulator"
_GUARD_S = 1_200.0


def measure_simulation(
    folder: Path, devices: int, seconds: int, seed: int, progress: Progress
) -> Outcome:
    """Simulate a city on one host and on three; return how many rows there are, and which tables differ.

    Parameters
    ----------
    folder
        New; shared by all hosts.
    devices, seconds, seed
        Of the simulation.
    """
    outcome = Outcome(SIMULATION)
    began_s = time.monotonic()
    alone, spread = folder / "shared" / "alone", folder / "shared" / "spread"
    what = [f"--devices={devices}", f"--seconds={seconds}", f"--seed={seed}", "--stream"]
    (folder / "shared").mkdir()
    with ExitStack() as stack:
        progress(f"{SIMULATION}: on one host", 0, 3)
        log = stack.enter_context((folder / "simulate.log").open("ab"))
        _finish(
            subprocess.Popen(
                _command("simulate", f"--out={alone}", *what),
                stdout=log,
                stderr=log,
                env={**os.environ, **variables()},
            ),
            "simulate",
            outcome,
        )
        progress(f"{SIMULATION}: on three hosts", 1, 3)
        hosts = stack.enter_context(Hosts(HOSTS, folder / "hosts"))
        cluster = stack.enter_context(SparkCluster(hosts, folder / "logs"))
        driver = hosts[1]
        command = _command("simulate", f"--out={spread}", *what, *cluster.options(driver))
        _finish(driver.start(command, log, variables(driver)), "simulate on three hosts", outcome)
        progress(f"{SIMULATION}: check", 2, 3)
        check = _command("simulate", "check", str(spread))
        _finish(driver.start(check, log, variables(driver)), "simulate check", outcome)
    if not outcome.wrong:
        outcome.results = _compare(alone, spread, outcome.wrong)
    outcome.seconds = time.monotonic() - began_s
    return outcome


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli", *arguments]


def _finish(process: subprocess.Popen[bytes], name: str, outcome: Outcome) -> None:
    if process.wait(_GUARD_S):
        outcome.wrong.append(f"{name} has ended with {process.returncode}")


def _compare(one: Path, other: Path, wrong: list[str]) -> int:
    """Compare all tables, row by row in their order; return how many rows there are."""
    tables = _tables(one)
    if tables != _tables(other):
        wrong.append(f"tables: {tables} and {_tables(other)}")
        return 0
    count = 0
    for name in tables:
        rows, found = (_rows(folder, name) for folder in (one, other))
        count += len(rows)
        if not rows.equals(found):
            wrong.append(f"{name}: {len(rows):,} rows and {len(found):,} differ")
    return count


def _tables(folder: Path) -> list[str]:
    """Return the tables below a folder, of which large ones are divided (`slice=3`)."""
    folders = {path.parent.relative_to(folder) for path in folder.rglob("*.parquet")}
    return sorted({"/".join(part for part in one.parts if "=" not in part) for one in folders})


def _rows(folder: Path, name: str) -> pa.Table:
    files = sorted((folder / name).rglob("*.parquet"))
    return ds.dataset(files, format="parquet").to_table()
