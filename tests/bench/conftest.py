"""What the tests of benchmarks share."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bench import datasets
from cli.app import app


@pytest.fixture(scope="session")
def city():
    """A drawn city of 2,000 places."""
    return datasets.synthetic(2_000)


@pytest.fixture
def run_experiments(tmp_path):
    """Run experiments by the command; return the rows of each, by its name."""

    def run(*names, settings=(), variants=(), picture_bytes_min=10_000):
        out, picture = tmp_path / "results.json", tmp_path / "results.png"
        options = [*(f"--set={one}" for one in settings), *(f"--variant={one}" for one in variants)]
        files = [f"--json={out}", f"--plot={picture}"]
        result = CliRunner().invoke(app, ["bench", "run", *names, *options, *files])
        assert result.exit_code == 0, result.output
        assert result.output.splitlines()[-1].endswith("0 mismatches")
        assert picture.stat().st_size > picture_bytes_min
        found = json.loads(out.read_text())
        assert {"format", "commit", "date", "machine", "packages", "results"} <= set(found)
        for one in found["results"]:
            assert "error" not in one
            assert {"variant", "mismatches", "lists_audited"} <= set.intersection(*map(set, one["rows"]))
            assert one["audit"]["mismatches"] == 0
            columns = set().union(*one["rows"])
            assert columns & set(one["metrics"]), "no metric was measured"
        return {one["experiment"]: one["rows"] for one in found["results"]}

    return run


@pytest.fixture
def refused(tmp_path):
    """Run a command that is refused, without data; return what it said as one line."""

    def run(name, *arguments):
        known = {"NEARCAST_DATA": str(tmp_path), "PATH": ""}
        done = CliRunner().invoke(app, ["bench", name, *arguments], env=known)
        assert done.exit_code != 0
        assert isinstance(done.exception, SystemExit), done.exception
        return " ".join(done.stderr.split())

    return run
