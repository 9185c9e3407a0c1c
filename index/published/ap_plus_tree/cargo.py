"""Moving the m-lists during rebuilds of nodes (`index.published.ap_tree.rebuilds.Cargo`)."""

from __future__ import annotations

from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree import load_kernels
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_plus_tree.lists import ListArrays
from index.published.ap_tree import layout as T
from index.published.ap_tree.arrays import TreeArrays
from index.published.ap_tree.layout import Numbers


class ListCargo:
    """Objects in the lists of nodes.

    Parameters
    ----------
    arrays
        The arrays of the tree.
    lists
        The arrays of the lists.
    """

    def __init__(self, arrays: TreeArrays, lists: ListArrays) -> None:
        self._arrays = arrays
        self._lists = lists

    def now(self) -> Lists:
        """Return the arguments of kernels."""
        return self._lists.lists(len(self._arrays.nodes))

    def clear(self) -> None:
        """Clear all lists."""
        self._lists.clear()

    def load_all(self) -> None:
        """Insert all live objects into the whole tree. O(objects)."""
        self._lists.reserve_load()
        rows = self._lists.objects.table.rows
        used = self._lists.objects.table.used()
        live = used[rows["expiry_ms"][used] > self._lists.objects.now_ms]
        self._lists.load[: len(live)] = live
        self._lists.state[L.LOADED] = len(live)
        self.put_back(int(self._arrays.meta[T.ROOT]), self._arrays.order)

    def take_off(self, node: int) -> None:
        """Empty the lists of a node and below."""
        self._lists.reserve_load()
        load_kernels.take_off(self._arrays.tree(), self.now(), node)

    def put_back(self, node: int, order: Numbers) -> None:
        """Insert the removed objects into the rebuilt node."""
        self._lists.state[L.PUT_AT] = 0
        while load_kernels.put_back(self._arrays.tree(), self.now(), order, node) == T.OUT_OF_ROOM:
            self._lists.grow()
        self._lists.state[L.LOADED] = 0

    def begin_carrying(self) -> None:
        """Start with the first object."""
        state = self._lists.state
        state[L.CARRIES] = 1
        state[L.CARRY_AT] = state[L.CARRY_AGAIN] = 0
        state[L.MARK] += 1
        state[L.CARRY_MARK] = state[L.MARK]

    def carry(self, budget: int) -> bool:
        """Insert some objects into the new subtree; return whether all are done."""
        state = self._lists.state
        if state[L.CARRY_AGAIN]:
            self.take_off(int(self._arrays.meta[T.JOB_NEW]))
            self.begin_carrying()
        end = self._lists.objects.table.end
        status = load_kernels.carry(self._arrays.tree(), self.now(), end, budget)
        if status == T.OUT_OF_ROOM:
            self._lists.grow()
        return status == T.FINISHED

    def end_carrying(self, old: int) -> None:
        """Start to empty the lists of the replaced subtree."""
        state = self._lists.state
        state[L.CARRIES] = 0
        now = self.now()
        now.walk[0] = old
        now.walk[1] = T.NOTHING
        state[L.WALK_COUNT] = 1

    def let_go(self, budget: int) -> bool:
        """Empty some of these lists; return whether all are done."""
        return load_kernels.let_go(self._arrays.tree(), self.now(), budget) == T.FINISHED
