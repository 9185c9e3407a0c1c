"""Some damages of every kind: `make damages` is the same at length."""

from __future__ import annotations

import pytest

from server.store import opening
from tests.chaos import damages
from tests.chaos.damage_kinds import ACCEPTED, KINDS
from tests.support.amounts import examples

EACH = 5


def quiet(_stage, _done, _total):
    """Nobody is told."""


@pytest.fixture
def without_fsync(monkeypatch):
    monkeypatch.setattr(opening, "SYNCHRONOUS", "OFF")


@pytest.mark.usefixtures("without_fsync")
def test_a_start_serves_everything_or_names_the_damage():
    kinds = [*KINDS, *ACCEPTED]
    count = examples(EACH) * len(kinds)
    tallies = damages.run(count, 7, quiet)
    assert [one.kind for one in tallies] == kinds
    assert {one.kind: one.silent for one in tallies if one.silent} == {}
    assert sum(one.tried for one in tallies) == count
    for one in tallies:
        assert one.exact + one.refused + one.earlier == one.tried
        assert one.accepted <= one.refused
        assert (one.earlier > 0) is (one.kind in ACCEPTED)
    assert sum(one.refused for one in tallies) > count / 2
    assert sum(one.accepted for one in tallies) > count / 2


@pytest.mark.slow
@pytest.mark.usefixtures("without_fsync")
def test_the_same_seed_makes_the_same_damages():
    first, again = (damages.run(len(KINDS), 3, quiet) for _ in range(2))

    def counts(tallies):
        return [(one.tried, one.exact, one.refused, one.silent) for one in tallies]

    assert counts(first) == counts(again)
