"""Names of indexes that a stream job is given: wrong ones are refused, with where they are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from safe_region.earth.frame import Area
from streaming.parameters import ParameterError, StreamParameters
from streaming.partition.window import WindowSize


def parameters(**given) -> StreamParameters:
    feeds = (Path("messages"), Path("subscriptions"), Path("out"), Path("checkpoint"))
    return StreamParameters(*feeds, Area(12.0, 55.0, 12.2, 55.1), WindowSize(10, 0), **given)


def test_the_defaults_are_accepted_and_others_of_the_catalogue():
    assert parameters().clause_index == "inverted-grid"
    assert parameters(clause_index="rq-tree", subscription_index="igpt").subscription_index == "igpt"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"clause_index": "rt-tre"},
            "clause_index is rt-tre, must be one that `nearcast indexes` lists for boolean subscriptions",
        ),
        (
            {"subscription_index": "sq-tree"},
            "subscription_index is sq-tree, must be one of ciq, igpt, ipt, naive, sq-plus-tree",
        ),
    ],
)
def test_a_name_that_is_none_is_refused(given, message):
    with pytest.raises(ParameterError) as refused:
        parameters(**given)
    assert str(refused.value).startswith(message)
