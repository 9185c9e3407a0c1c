"""`nearcast bench draw-file`: the same files again, and what `bench match-file` reads."""

from __future__ import annotations

from click.testing import CliRunner

from bench.match_file.run import match_files
from cli.app import app


def draw(folder, *options):
    paths = folder / "subs.tsv", folder / "objects.tsv"
    amounts = ("--subscriptions", "300", "--objects", "200")
    result = CliRunner().invoke(app, ["bench", "draw-file", *map(str, paths), *amounts, *options])
    assert result.exit_code == 0, result.output
    return paths


def test_a_seed_draws_the_same_files(tmp_path):
    texts = []
    for seed in ("7", "7", "8"):
        paths = draw(tmp_path, "--seed", seed, "--side-max", "0.1")
        texts.append([path.read_text() for path in paths])
    assert texts[0] == texts[1]
    assert texts[0][0] != texts[2][0]
    assert texts[0][1] != texts[2][1]


def test_sides_are_as_requested_and_coordinates_are_not_rounded(tmp_path):
    subscriptions, objects = draw(tmp_path, "--side-max", "0.01")
    rows = [line.split("\t") for line in subscriptions.read_text().splitlines()]
    assert len(rows) == 300
    assert len(objects.read_text().splitlines()) == 200
    widths = [float(x2) - float(x1) for _, x1, _, x2, _, _ in rows]
    assert 200.0 < max(widths) < 301.0, "of a city of 30 km"
    assert all(1 <= len(row[5].split(",")) <= 5 for row in rows)
    assert any(len(row[1].split(".")[1]) > 9 for row in rows), "as many digits as there are"


def test_a_drawn_file_is_matched_by_the_peers_as_by_the_definition(tmp_path):
    paths = draw(tmp_path)
    found = {}
    for name in ("naive", "inverted-grid", "dict", "numba-dict", "strtree"):
        out = tmp_path / f"{name}.tsv"
        report = match_files(*paths, name, out, 64, lambda *_: None)
        assert report.matches == len(out.read_text().splitlines()) > 0
        found[name] = out.read_text()
    assert len(set(found.values())) == 1


def test_a_folder_that_is_not_there(tmp_path):
    paths = tmp_path / "none" / "subs.tsv", tmp_path / "objects.tsv"
    result = CliRunner().invoke(app, ["bench", "draw-file", *map(str, paths), "--subscriptions", "3"])
    assert result.exit_code == 1
    assert "subs.tsv cannot be written" in result.output
