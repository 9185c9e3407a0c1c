"""The catalogue: every name makes an index of its kind, and loads no published structure but its own."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from inspect import getmembers, isfunction, signature
from pathlib import Path

import pytest

from index.catalogue import (
    CLAUSE_INDEXES,
    KINDS,
    MOVING_INDEXES,
    WEIGHTED_SUBSCRIPTION_INDEXES,
    weighted_index,
)
from index.contracts import ClauseIndex, MovingIndex, ObjectIndex, SubscriptionIndex
from index.entry import Entry
from index.published.rt_tree import KINDS as RT_TREES
from index.square import Square

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = {
    "object_index": ObjectIndex,
    "subscription_index": SubscriptionIndex,
    "clause_index": ClauseIndex,
    "moving_index": MovingIndex,
}
ENTRIES = {
    f"{kind.setting} {name}": (CONTRACTS[kind.setting], entry)
    for kind in KINDS.values()
    for name, entry in kind.indexes.items()
}

LOADED = {
    "object_index": {"iqf": {"iqf"}, "iq-tree": {"iq_tree"}, "ir-tree": {"ir_tree"}},
    "subscription_index": {
        "sq-tree": {"sq_tree"},
        "ciq": {"ciq"},
        "ipt": {"igpt"},
        "igpt": {"igpt"},
    },
    "clause_index": {
        "ap-tree": {"ap_tree"},
        "iq-tree-subscriptions": {"quad_inverted", "clause_cells"},
        "rq-tree": {"inverted_quad", "clause_cells"},
        "ss-index": {"grid_files", "postings", "clause_cells"},
        "kk-index": {"grid_files", "postings", "clause_cells"},
        **{name: {"rt_tree", "clause_cells"} for name in RT_TREES},
    },
    "moving_index": {
        "ap-plus-tree": {"ap_plus_tree", "ap_tree"},
        "ap-plus-k": {"ap_tree", "iqf"},
        "ap-plus-s": {"ap_tree", "iq_tree"},
        "iq-plus-tree": {"quad_inverted", "clause_cells", "quad_files", "postings"},
        "rq-plus-tree": {"inverted_quad", "clause_cells", "quad_files", "postings"},
        "ss-index": {"grid_files", "postings", "clause_cells"},
        "kk-index": {"grid_files", "postings", "clause_cells"},
    },
}
"""Folders of `index.published` by setting and name; of the other names none."""

_EACH = """
    import json, os, sys
    import index.naive
    from index.catalogue import KINDS

    def loaded():
        return sorted({name.split(".")[2] for name in sys.modules if name.startswith("index.published.")})

    assert "index.published" not in sys.modules, loaded()
    for kind in KINDS.values():
        for name, entry in kind.indexes.items():
            child = os.fork()
            if not child:  # what it imports is not here
                entry()
                print(json.dumps([kind.setting, name, loaded()]), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.mark.parametrize("name", ENTRIES)
def test_a_name_makes_an_empty_index_of_its_kind(name):
    contract, entry = ENTRIES[name]
    for make in (entry, pickle.loads(pickle.dumps(entry))):  # noqa: S301 - it was made here
        for square in (None, Square(0.0, 0.0, 100.0)):
            index = make(square)
            index.check()
            assert len(index) == 0
            for method, declared in getmembers(contract, isfunction):
                if not method.startswith("_"):
                    assert signature(getattr(type(index), method)) == signature(declared), method
            for attribute, _ in getmembers(contract, lambda one: isinstance(one, property)):
                assert getattr(index, attribute) == 0, attribute


def test_a_square_reaches_the_index_and_the_parts_of_a_pair():
    square = Square(3.0, 4.0, 100.0)
    assert CLAUSE_INDEXES["rq-tree"](square)._square == square
    pair = MOVING_INDEXES["rq-plus-tree"](square)
    assert pair.clause_index._square == square
    assert pair._objects._arrays.square == square


@pytest.mark.parametrize("path", ["os:system", "index.entry:import_module", "index.tables.slots:np"])
def test_an_entry_calls_nothing_but_a_class_of_this_package(path):
    with pytest.raises(TypeError, match=f"{path} is not a class of index"):
        Entry(path, takes_square=False, options=(("name", "antigravity"),))()
    assert "antigravity" not in sys.modules


@pytest.mark.processes
def test_an_index_loads_no_published_structure_but_its_own():
    program = "\n".join(line.removeprefix("    ") for line in _EACH.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(setting, name) for setting, name, _ in found] == [
        (kind.setting, name) for kind in KINDS.values() for name in kind.indexes
    ]
    for setting, name, loaded in found:
        assert set(loaded) == LOADED[setting].get(name, set()), (setting, name)


def test_every_published_structure_can_be_chosen():
    folders = {path.parent.name for path in (ROOT / "index" / "published").glob("*/__init__.py")}
    assert {one for names in LOADED.values() for parts in names.values() for one in parts} == folders


def test_every_rt_tree_has_its_name():
    entries = {name for name, entry in CLAUSE_INDEXES.items() if "rt_tree:" in entry.path}
    assert entries == set(RT_TREES)
    for name in RT_TREES:
        assert CLAUSE_INDEXES[name]()._kind == RT_TREES[name]


def test_defaults_are_there_and_of_the_product():
    for kind in KINDS.values():
        assert kind.default in kind.names
        if kind.default in kind.indexes:
            assert "published" not in kind.indexes[kind.default].path
            assert not kind.indexes[kind.default].source


def test_every_entry_has_a_description_and_those_of_papers_a_reference():
    for kind in KINDS.values():
        for name, entry in kind.indexes.items():
            assert entry.what, name
            of_paper = any("published" in one.path for one in (entry, *entry.parts))
            assert bool(entry.source) == of_paper, name


def test_weights_are_of_those_that_take_them_else_of_the_default():
    subscriptions = KINDS["subscription_index"]
    assert set(subscriptions.indexes) - WEIGHTED_SUBSCRIPTION_INDEXES == {"sq-tree"}
    for name in subscriptions.names:
        taken = name if name in WEIGHTED_SUBSCRIPTION_INDEXES else subscriptions.default
        assert weighted_index(name) is subscriptions.indexes[taken]


def test_a_wrong_name_is_an_error_with_the_list_and_a_close_name():
    kind = KINDS["object_index"]
    assert kind.limit("iqf-pluss") == (
        "one that `nearcast indexes` lists for objects; did you mean 'iqf-plus'?"
    )
    assert kind.limit("b") == "one that `nearcast indexes` lists for objects"
    assert KINDS["moving_index"].names[0] == "none"
