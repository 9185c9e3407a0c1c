"""Results: JSON with all data needed to interpret them, and tables for the screen."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.benchmark import Row
from nearcast.version import installed_version

FORMAT = 1
"""Version of the JSON format; it changes when readers have to change."""

_PACKAGES = ("numpy", "numba", "shapely", "pyarrow", "pyspark", "grpcio", "uvloop", "psycopg")
_AUDIT = ("lists_audited", "mismatches")
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(slots=True)
class Result:
    """Results of one experiment.

    Parameters
    ----------
    experiment, source, what
        Its name, the paper and figure, and a line.
    parameters
        Base parameters of all points; rows have the differences.
    metrics
        Columns that are shown, with their units.
    labels
        Columns of the varied parameters and of the data.
    rows
        A row for each variant and point, with all measured columns.
    took_s
        Seconds of the whole experiment.
    error
        Reason for which there are no rows.
    """

    experiment: str
    source: str
    what: str
    parameters: dict[str, Any]
    metrics: dict[str, str]
    labels: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    took_s: float = 0.0
    error: str | None = None

    @property
    def lists(self) -> int:
        """Return the number of audited results."""
        return sum(row["lists_audited"] for row in self.rows)

    @property
    def mismatches(self) -> int:
        """Return the number of wrong ones among them."""
        return sum(row["mismatches"] for row in self.rows)

    @property
    def failures(self) -> list[str]:
        """Return the failures of the run, other than mismatches, that rows or the run report."""
        found = [row["failure"] for row in self.rows if row.get("failure")]
        return [*found, *([self.error] if self.error else [])]

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "experiment": self.experiment,
            "source": self.source,
            "what": self.what,
            "parameters": self.parameters,
            "seed": self.parameters.get("seed"),
            "labels": self.labels,
            "metrics": self.metrics,
            "audit": {"lists": self.lists, "mismatches": self.mismatches},
            "took_s": self.took_s,
            **({"error": self.error} if self.error else {}),
            "rows": self.rows,
        }

    def table(self) -> list[str]:
        """Return the rows as lines: variants, varied parameters, metrics."""
        known = ["variant", *self.labels, "skipped", *self.metrics, *_AUDIT]
        columns = [name for name in dict.fromkeys(known) if any(name in row for row in self.rows)]
        table = [columns, *([str(row.get(name, "")) for name in columns] for row in self.rows)]
        widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
        return [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table
        ]


def write(path: Path, results: Sequence[Result], command: Sequence[str]) -> None:
    """Write the results of a command."""
    found = {
        "format": FORMAT,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(command),
        "commit": _commit(),
        "machine": machine(),
        "packages": _versions(),
        "results": [one.as_json() for one in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2, default=str) + "\n")


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    found = {"nearcast": installed_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> dict[str, Any] | None:
    """Return the commit of the checkout, and whether files differ from it; None without a checkout."""
    commit = _git("rev-parse", "HEAD")
    if not commit:
        return None
    return {"id": commit, "is_changed": bool(_git("status", "--porcelain", "--untracked-files=no"))}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - reads the checkout
            ["git", *arguments],  # noqa: S607
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
