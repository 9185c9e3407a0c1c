"""The figures of the documentation are what the code draws (`make figures`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.figures import draw
from docs.figures.folders import imports, layers

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    draw.draw(folder)
    return folder


def test_every_figure_is_there(drawn):
    assert {file.name for file in drawn.iterdir()} == {file.name for file in FOLDER.glob("*.svg")}


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("*.svg")))
def test_figures_are_drawn_by_the_code(drawn, name):
    found, kept = (drawn / name).read_text(), (FOLDER / name).read_text()
    assert NUMBER.sub("#", found) == NUMBER.sub("#", kept)
    numbers = [float(one) for one in NUMBER.findall(found)]
    assert numbers == pytest.approx([float(one) for one in NUMBER.findall(kept)], abs=0.02)


def test_the_figure_of_folders_has_all_and_arrows_point_down():
    rows = layers()
    depth = {name: number for number, row in enumerate(rows) for name in row}
    for folder, number in depth.items():
        assert all(depth[lower] > number for lower in imports(folder))
