"""Structures that one could write or use in place of a clause index, by name."""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.clause_dict import ClauseDict
from bench.peers.clause_strtree import ClauseStrtree
from bench.peers.numba_dict import NumbaDict
from index.contracts import ClauseIndex

PEERS: dict[str, Callable[[], ClauseIndex]] = {
    "dict": ClauseDict,
    "numba-dict": NumbaDict,
    "strtree": ClauseStrtree,
}
