"""The notebook of examples/ runs, and is kept without its output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the extra docs")
nbclient = pytest.importorskip("nbclient", reason="needs the extra docs")
pytest.importorskip("geopandas", reason="needs the extra docs")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "town.ipynb"


def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_kept_without_output():
    nbformat.validate(notebook())
    for cell in notebook().cells:
        assert cell.cell_type == "markdown" or (not cell.outputs and cell.execution_count is None)


@pytest.mark.processes
@pytest.mark.spark
async def test_it_runs_and_draws(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    client = nbclient.NotebookClient(
        notebook(), timeout=None, resources={"metadata": {"path": str(tmp_path)}}
    )
    done = await client.async_execute()
    pictures = [
        output
        for cell in done.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 2
