"""docs/simulation.md defines every figure of a replay, in its order."""

from __future__ import annotations

import re
from pathlib import Path

from simulator.replay.report import ReplayReport

SIMULATION = (Path(__file__).resolve().parents[2] / "docs" / "simulation.md").read_text()


def test_every_figure_of_the_summary_is_defined():
    _, _, section = SIMULATION.partition("\n### The summary\n")
    (table,) = re.findall(r"\A.*?\n\|---\|---\|\n(.*?)\n\n", section, re.DOTALL)
    defined = [name for row in table.splitlines() for name in re.findall(r"`([^`]*)`", row.split("|")[1])]
    assert defined == [name.replace("_", " ") for name in ReplayReport().figures()]
