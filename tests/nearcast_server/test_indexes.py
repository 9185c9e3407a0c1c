"""Indexes by their names."""

from __future__ import annotations

import numpy as np
import pytest

import nearcast_server
from index.batches import KeywordLists, ObjectBatch
from index.catalogue import KINDS
from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, SubscriptionIndex

CONTRACTS = {
    "object": ObjectIndex,
    "subscription": SubscriptionIndex,
    "clause": ClauseIndex,
    "moving": MovingIndex,
}
NAMED = [(kind, name) for kind in CONTRACTS for name in nearcast_server.index_names(kind)]


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_every_index_has_the_methods_of_its_contract(kind, name):
    methods = {one for one in dir(CONTRACTS[kind]) if not one.startswith("_")}
    for square in (None, (0.0, 0.0, 10_000.0)):
        made = nearcast_server.make_index(name, kind, square=square)
        assert methods <= set(dir(made))


def test_the_names_are_those_of_the_settings():
    assert {f"{kind}_index" for kind, _ in NAMED} == set(KINDS)
    for setting, kind in KINDS.items():
        assert nearcast_server.index_names(setting.removesuffix("_index")) == tuple(kind.indexes)


def test_each_call_makes_another_index():
    keywords = KeywordLists.of([[1], [1, 2]])
    objects = ObjectBatch(np.array([1, 2]), np.array([0.0, 5.0]), np.array([0.0, 0.0]), keywords)
    first, second = (nearcast_server.make_index("naive", "object") for _ in range(2))
    first.insert(objects)
    second.insert(objects)
    with pytest.raises(KeyError):
        first.insert(objects)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("naive",), "which object and subscription and clause and moving indexes have: give the kind"),
        (("iqf-pluss",), "name is 'iqf-pluss', must be one of"),
        (("iqf-plus", "clause"), "must be one of naive, ap-tree, "),
        (
            ("iqf-plus", "objects"),
            "kind is 'objects', must be one of object, subscription, clause, moving",
        ),
    ],
)
def test_a_name_that_is_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        nearcast_server.make_index(*arguments)
    with pytest.raises(ValueError, match="kind is 'objects'"):
        nearcast_server.index_names("objects")
