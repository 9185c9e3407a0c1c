"""`nearcast idf`: tables are built from documents and come into force at a server."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from cli.app import app
from nearcast import IdfTable


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.tsv"
    path.write_text('1\t14.5\t35.5\ttea,cake\n2\t14.5\t35.5\ttea coffee\n["tea", "two words"]\n\n')
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["idf", *map(str, arguments)])


def test_a_table_is_built_from_lines(documents, tmp_path):
    out = tmp_path / "weights.json"
    result = run("build", documents, "-o", out)
    assert result.exit_code == 0, result.output
    assert "4 keywords" in result.output
    table = IdfTable.read(out)
    assert set(table.weights) == {"tea", "cake", "coffee", "two words"}
    assert table.weights["tea"] < table.weights["cake"] < table.unknown
    assert json.loads(out.read_text())["version"] == 1


@pytest.mark.parametrize("text", ["{}", '{"format": "nearcast-idf", "version": 9}'])
def test_what_is_no_table_is_said_in_a_line(tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    result = run("load", path)
    assert result.exit_code == 1
    assert "must be" in result.output
    assert "Traceback" not in result.output


def test_a_server_that_is_not_there_is_named(documents, tmp_path):
    out = tmp_path / "weights.json"
    run("build", documents, "-o", out)
    result = run("load", out, "--server=127.0.0.1:1")
    assert result.exit_code == 1
    assert "Traceback" not in result.output
