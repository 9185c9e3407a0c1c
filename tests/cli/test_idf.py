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
def test_a_wrong_table_is_reported_in_a_line(tmp_path, text):
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"tea cake\ncaf\xe9 tea\n", "documents.txt, line 2 is not UTF-8 text: byte 4 is 0xe9"),
        (b'tea\n["\\ud800"]\n', "documents.txt, line 2: '\\ud800' has a lone surrogate, must be text"),
    ],
)
def test_documents_that_are_no_text_make_no_table(tmp_path, content, message):
    (tmp_path / "documents.txt").write_bytes(content)
    result = run("build", tmp_path / "documents.txt", "-o", tmp_path / "weights.json")
    assert result.exit_code == 1
    assert message in result.output
    assert not (tmp_path / "weights.json").exists()


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_a_word(tmp_path):
    (tmp_path / "documents.txt").write_bytes(b"\xef\xbb\xbftea\ncake\n")
    assert run("build", tmp_path / "documents.txt", "-o", tmp_path / "w.json").exit_code == 0
    assert set(IdfTable.read(tmp_path / "w.json").weights) == {"tea", "cake"}


def test_a_table_with_a_lone_surrogate_is_refused_in_a_line(tmp_path):
    path = tmp_path / "weights.json"
    path.write_text('{"format": "nearcast-idf", "version": 1, "weights": {"\\ud800": 1.0}}')
    result = run("load", path)
    assert (result.exit_code, result.output) == (
        1,
        "Error: weights is of '\\ud800', must be of text without lone surrogates\n",
    )


def test_a_folder_that_is_no_simulation_is_named(tmp_path):
    result = run("build", tmp_path, "-o", tmp_path / "weights.json")
    assert result.exit_code == 1
    assert f"{tmp_path} is not a simulation: it has no table {tmp_path / 'objects'}" in result.output
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "part.parquet").write_text("none")
    result = run("build", tmp_path, "-o", tmp_path / "weights.json")
    assert result.exit_code == 1
    assert f"{tmp_path / 'objects'} cannot be read: " in result.output
