"""What one would write, or take, in place of a clause index, by name."""

from __future__ import annotations

from collections.abc import Callable

from bench.ap_tree.dict_index import DictIndex
from bench.ap_tree.numba_dict import NumbaDict
from bench.ap_tree.strtree_index import StrtreeIndex
from index.contracts import ClauseIndex

PEERS: dict[str, Callable[[], ClauseIndex]] = {
    "dict": DictIndex,
    "numba-dict": NumbaDict,
    "strtree": StrtreeIndex,
}
