"""Tests have the markers by which `make test-quick` chooses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

from tests.index import (
    test_clause_index,
    test_moving_index,
    test_object_index,
    test_subscription_index,
    test_within,
)
from tests.index.published import is_published, marked
from tests.support.tiers import FIXTURES, FOLDERS, left_out

ROOT = Path(__file__).resolve().parents[1]
SUITES = (test_clause_index, test_moving_index, test_object_index, test_subscription_index, test_within)
ALL = set(FIXTURES.values()).union(*FOLDERS.values())
SOME = (
    "tests/bench/test_ap_plus.py",
    "tests/chaos/test_chaos.py",
    "tests/feeds/test_causes.py",
    "tests/index/papers/test_sq_tree.py",
    "tests/server/test_bridge.py",
    "tests/session/test_leases.py",
    "tests/simulator/test_chance.py",
    "tests/streaming/spark/test_local_cluster.py",
)
"""Files with tests in each of the folders, with each of the fixtures, and with none."""


class Collected:
    """Keeps the tests that pytest finds."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = list(session.items)


def test_markers_follow_from_fixtures_and_folders():
    collected = Collected()
    options = ["--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    assert pytest.main([*options, *(str(ROOT / one) for one in SOME)], plugins=[collected]) == 0
    unseen = {*FIXTURES, *FOLDERS}
    plain = 0
    for item in collected.items:
        names = {mark.name for mark in item.iter_markers()}
        for fixture in FIXTURES.keys() & set(item.fixturenames):
            assert FIXTURES[fixture] in names, item.nodeid
            unseen.discard(fixture)
        for folder in FOLDERS:
            if item.path.is_relative_to(ROOT / folder):
                assert names >= FOLDERS[folder], item.nodeid
                unseen.discard(folder)
        plain += not names & ALL
    assert not unseen
    assert plain > 5, "nothing else marks a test"


@pytest.mark.parametrize("suite", SUITES, ids=lambda one: one.__name__)
def test_indexes_of_the_contract_suites_are_marked_if_they_are_published(suite):
    names = {one.values[0]: bool(one.marks) for one in marked(suite.FACTORIES)}
    assert names == {name: is_published(make) for name, make in suite.FACTORIES.items()}


def test_without_the_marker_no_process_starts():
    with pytest.raises(pytest.fail.Exception, match="starts a process, and has no marker"):
        subprocess.run([sys.executable, "-V"], check=True)


def test_the_quick_ones_are_those_without_a_marker(request):
    declared = {one.partition(":")[0] for one in request.config.getini("markers")}
    (expression,) = re.findall(
        r"^test-quick: MARKS := not \((.*)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    names = set(expression.split(" or "))
    assert names == ALL | {"slow"}
    assert names <= declared
    assert all(left_out(PurePath(folder), f"not ({expression})") for folder in FOLDERS)


@pytest.mark.parametrize(
    ("folder", "expression", "is_left_out"),
    [
        ("tests/bench", "not published", True),
        ("tests/bench", "not (spark or processes)", True),
        ("tests/bench", "not spark", False),
        ("tests/bench", "published", False),
        ("tests/bench", "not published or spark", False),
        ("tests/bench", "", False),
        ("tests/server", "not (spark or processes or published)", False),
    ],
)
def test_a_folder_is_passed_over_if_no_test_of_it_can_be_chosen(folder, expression, is_left_out):
    assert left_out(PurePath(folder), expression) is is_left_out
