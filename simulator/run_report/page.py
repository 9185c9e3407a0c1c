"""The page of a replay: one self-contained HTML file, for any browser, offline."""

from __future__ import annotations

from pathlib import Path

import jinja2
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from nearcast.version import installed_version
from simulator.replay.processes import Replayed
from simulator.replay.report import ReplayReport
from simulator.run_report.charts import charts, size_text
from simulator.run_report.run_map import run_map
from simulator.stages import row_count
from simulator.tables import read_table
from simulator.world import read_world

OBJECTS_SHOWN_MAX = 4_000
"""More dots hide the map."""

MISMATCHES_SHOWN_MAX = 50

_TEMPLATE = Path(__file__).with_name("page.html.jinja")
_BATCH_ROWS = 65_536


def write_page(folder: Path, replayed: Replayed, out_html: Path) -> None:
    """Write the page of a replay.

    Parameters
    ----------
    folder
        The simulation.
    replayed
        The completed replay.
    out_html
        The file; replaced atomically if it exists.

    Raises
    ------
    SimulationError
        If a table cannot be read.
    OSError
        If the file cannot be written.
    """
    world = read_world(folder)
    report = replayed.report
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(_TEMPLATE.read_text()).render(
        world=world,
        version=installed_version(),
        report=report,
        tiles=_tiles(report),
        map=run_map(world, read_table(folder, "roads"), _object_places(folder), replayed),
        charts=charts(report),
        figures={name.replace("_", " "): f"{value:,}" for name, value in report.figures().items()},
        mismatches=report.mismatches[:MISMATCHES_SHOWN_MAX],
        parameters={name: value for name, value in world.parameters.items() if value is not None},
    )
    out_html.parent.mkdir(parents=True, exist_ok=True)
    draft = out_html.with_name(f"{out_html.name}.new")
    draft.write_text(page)
    draft.replace(out_html)


def _tiles(report: ReplayReport) -> list[tuple[str, str, str]]:
    """Return the figures at the top: a name, a value, and an explanation."""
    counters = report.counters
    sent = size_text(report.per_device_hour(counters.bytes_sent + counters.bytes_received))
    median, late = (report.latency_ms(share) for share in (0.5, 0.99))
    energy = (
        "fixes",
        f"{report.per_device_hour(report.fixes):,.0f}",
        f"needed per device and hour; {report.per_device_hour(counters.moves):,.0f} moves",
    )
    return [
        ("silent moves", f"{100.0 * report.silent_share:.2f} %", "moves without a report"),
        ("reports", f"{report.reports_per_device_hour:,.1f}", "per device and hour"),
        *([energy] if report.fixes else []),
        ("latency", f"{median:.1f} ms", f"median; p99 {late:.1f} ms"),
        ("traffic", sent, "per device and hour, both ways"),
        ("held", f"{report.objects_held_mean:.1f}", "objects per subscription, at a new anchor"),
    ]


def _object_places(folder: Path) -> npt.NDArray[np.float64]:
    """Return the positions of published objects, (lon, lat) a row; if many, only some."""
    step = max(1, -(-row_count(folder / "objects") // OBJECTS_SHOWN_MAX))
    found: list[npt.NDArray[np.float64]] = [np.empty((0, 2))]
    for path in sorted((folder / "objects").glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=["lon", "lat"]):
                columns = [batch.column(name).to_numpy() for name in ("lon", "lat")]
                found.append(np.column_stack(columns)[::step])
    return np.concatenate(found)
