"""What a benchmark leaves behind: one JSON file, and pictures of it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Progress = Callable[[str, int, int], None]
"""Is told a stage, how much of it is done, and how much there is."""

_PACKAGES = ("nearcast", "numpy", "numba", "shapely")


def environment() -> dict[str, Any]:
    """Say what a run ran on."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write(path: Path, bench: str, parameters: object, rows: list[Row]) -> None:
    """Write the result of a run."""
    given = (
        asdict(parameters)
        if is_dataclass(parameters) and not isinstance(parameters, type)
        else parameters
    )
    found = {"bench": bench, "parameters": given, "environment": environment(), "rows": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2, default=str) + "\n")


_LINE = (
    "experiment",
    "variant",
    "standing_ranges",
    "subscriptions",
    "objects",
    "objects_seen",
    "k_max",
    "updates",
    "expired_share",
    "alpha",
    "similarity",
    "share",
    "retrieval_us",
    "us_per_object_median",
    "us_per_object_p99",
    "us_per_object_mean",
    "us_per_object_batch",
    "candidates_per_result",
    "skipped",
    "build_s",
    "slices",
    "slice_ms_max",
    "slice_cpu_ms_max",
    "results_per_object",
    "objects_measured",
    "bytes_per_subscription",
    "us_per_insert",
    "us_per_insert_settled",
    "rebuilds",
    "timestamps",
    "messages",
    "amp_us",
    "emp_us",
    "us_per_message",
    "messages_per_s",
    "changes_per_message",
    "refills_per_message",
    "partitions",
    "batch",
    "events",
    "events_per_s",
    "events_per_s_published",
    "us_per_event",
    "answers_per_event",
    "batch_s_p50",
    "batch_s_p99",
    "apply_us_per_message",
    "tuples_per_message",
    "tuples_everywhere_per_message",
    "cost_max_mean",
    "replication",
    "evaluated_per_message",
    "out_bytes_per_message",
    "checkpoint_mb",
    "memory_mb",
    "fill_s",
    "buffer_size",
    "us_per_message_batch",
    "us_per_move",
    "us_per_move_batch",
    "us_rebuilding_per_move",
    "us_per_move_in_all",
    "changes_per_move",
    "candidates_per_move",
    "us_per_insertion",
    "us_per_location_update",
    "bytes_per_pair",
    "extra",
    "us_per_subscription_median",
    "us_per_subscription_mean",
    "us_per_subscription_batch",
    "inserts_per_s",
    "removes_per_s",
    "inserts_per_s_small",
    "removes_per_s_small",
    "bytes_per_object",
    "objects_per_request",
    "publishers",
    "objects_per_s",
    "request_ms_median",
    "request_ms_p99",
    "request_ms_max",
    "objects_committed_per_s",
    "subscriptions_committed_per_s",
    "store_mb",
    "open_s",
    "objects_s",
    "subscriptions_s",
    "resident_mb",
    "attached",
    "attached_per_s",
    "bytes_more_attached",
    "devices",
    "publishes_per_s",
    "rss_mb",
    "kb_per_device",
    "pings_per_s",
    "pings_ratio",
    "reports_per_s",
    "reports_ratio",
    "reports_cpu_us",
    "metrics_reports_cpu_us",
    "metrics_cpu_ratio",
    "what",
    "open_per_s",
    "guarded_per_s",
    "rate_ratio",
    "open_cpu_us",
    "guarded_cpu_us",
    "cpu_ratio",
    "p99_ms_without",
    "p99_ms_without_min",
    "p99_ms_without_max",
    "p99_ms_beside",
    "p99_ms_beside_max",
    "is_kept",
    "role",
    "report_ms_p50_without",
    "report_ms_p99_without",
    "rss_mb_more",
    "report_ms_p50",
    "report_ms_p99",
    "report_p99_ratio",
    "publish_ms_p99_without",
    "deltas_per_s",
    "publish_ms_p50",
    "publish_ms_p99",
    "publish_p99_ratio",
    "pause_ms",
    "reports_per_s_without",
    "publishes_per_s_without",
    "publishes_ratio",
    "rss_mb_more_after",
    "recovery_s",
    "server_cores",
    "exceeded",
    "honest_refused",
    "acts_sent",
    "acts_answered",
    "acts_refused",
    "rise_mb",
    "noise_mb",
    "stalled_effect_ms",
    "reading_spread_ms",
    "accepted_per_s",
    "reanchors_per_s",
    "reanchors_ratio",
    "storm_s",
    "storm_cpu_us",
    "restart_s",
    "exact_s_p50",
    "exact_s_max",
    "seconds",
    "reports_per_device_hour",
    "objects_per_device_hour",
    "held",
    "pushes_per_device_hour",
    "questions_per_device_hour",
    "positions_per_device_hour",
    "server_us_per_device_s",
    "bytes_up",
    "bytes_down",
    "stale_share",
    "error",
    "memory_bytes",
    "update_ms_median",
    "update_ms_p95",
    "generated_ms_median",
    "expired_ms_median",
    "moved_ms_median",
    "mismatches",
)


def lines(rows: list[Row]) -> list[str]:
    """Return rows as a table for the screen: the columns that people look at first."""
    columns = [name for name in _LINE if any(name in row for row in rows)]
    table = [columns] + [[str(row.get(name, "")) for name in columns] for row in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table
    ]
