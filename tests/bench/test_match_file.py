"""`nearcast bench match-file`: two files in, sorted pairs out, whatever the index."""

from __future__ import annotations

import random

import pytest
from click.testing import CliRunner

from bench.match_file.run import INDEXES
from cli.app import app

SUBSCRIPTIONS = "7\t0\t0\t2\t1\ttea,cake\n3\t-1.5\t-1\t0\t0\ttea\n"
OBJECTS = "9\t0\t0\ttea,cake,milk\n10\t2\t1\tcake,tea\n4\t2.1\t1\tcake,tea\n"


def match(folder, subscriptions, objects, *options):
    paths = folder / "subs.tsv", folder / "objects.tsv"
    for path, text in zip(paths, (subscriptions, objects), strict=True):
        path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["bench", "match-file", *map(str, paths), *options])


@pytest.mark.parametrize("name", INDEXES)
def test_edges_and_order(tmp_path, name):
    out = tmp_path / "matches.tsv"
    result = match(tmp_path, SUBSCRIPTIONS, OBJECTS, "--index", name, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert out.read_text() == "9\t3\n9\t7\n10\t7\n"
    assert "subscriptions: 2," in result.output
    assert "objects: 3, matches: 3" in result.output


@pytest.mark.parametrize("name", INDEXES)
def test_every_index_finds_the_matches_of_the_definition(tmp_path, name):
    chance = random.Random(3)
    words = [f"w{i}" for i in range(12)]
    subscriptions, objects = {}, {}
    for key in range(400):
        x, y = chance.random(), chance.random()
        box = (x, y, x + chance.random() * 0.3, y + chance.random() * 0.3)
        subscriptions[key] = (box, chance.sample(words, chance.randint(1, 3)))
    for key in range(200):
        objects[key] = (chance.random(), chance.random(), chance.sample(words, chance.randint(2, 8)))
    text = "".join(
        f"{key}\t{x1!r}\t{y1!r}\t{x2!r}\t{y2!r}\t{','.join(required)}\n"
        for key, ((x1, y1, x2, y2), required) in subscriptions.items()
    )
    items = "".join(f"{key}\t{x!r}\t{y!r}\t{','.join(has)}\n" for key, (x, y, has) in objects.items())
    out = tmp_path / "matches.tsv"
    result = match(tmp_path, text, items, "--index", name, "--out", str(out), "--batch", "64")
    assert result.exit_code == 0, result.output
    expected = "".join(
        f"{key}\t{one}\n"
        for key, (x, y, has) in objects.items()
        for one, ((x1, y1, x2, y2), required) in subscriptions.items()
        if x1 <= x <= x2 and y1 <= y <= y2 and set(required) <= set(has)
    )
    assert expected
    assert out.read_text() == expected


@pytest.mark.parametrize(
    ("subscriptions", "objects", "error"),
    [
        ("1\t0\t0\t1\n", OBJECTS, "subs.tsv, line 1: the number of fields is 4, must be 6"),
        ("x\t0\t0\t1\t1\ttea\n", OBJECTS, "subs.tsv, line 1: id is 'x', must be a whole number"),
        ("1\t0\tnan\t1\t1\ttea\n", OBJECTS, "subs.tsv, line 1: y1 is 'nan', must be a finite number"),
        (SUBSCRIPTIONS + "1\t1\t0\t0\t1\ttea\n", OBJECTS, "subs.tsv, line 3: the rectangle is (1.0, "),
        (SUBSCRIPTIONS + "7\t1\t0\t1\t1\ttea\n", OBJECTS, "must be different from that of line 1"),
        ("1\t0\t0\t1\t1\ttea,,milk\n", OBJECTS, "subs.tsv, line 1: keywords is 'tea,,milk'"),
        (SUBSCRIPTIONS, "9\t0\t0\n", "objects.tsv, line 1: the number of fields is 3, must be 4"),
        (SUBSCRIPTIONS, "9\t0\tsouth\ttea\n", "objects.tsv, line 1: y is 'south'"),
    ],
)
def test_wrong_files_are_named(tmp_path, subscriptions, objects, error):
    result = match(tmp_path, subscriptions, objects, "--index", "naive")
    assert result.exit_code == 1
    assert error in result.output


def test_an_unknown_index(tmp_path):
    result = match(tmp_path, SUBSCRIPTIONS, OBJECTS, "--index", "b-tree")
    assert result.exit_code == 1
    assert "--index is 'b-tree', must be one of naive, " in result.output


def test_nothing_in_the_files(tmp_path):
    result = match(tmp_path, "", "", "--index", "naive")
    assert result.exit_code == 0, result.output
    assert "objects: 0, matches: 0" in result.output
