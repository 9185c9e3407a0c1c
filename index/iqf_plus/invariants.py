"""The invariants of IQF+, from the definitions, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from index.contracts import InconsistentIndexError
from index.iqf_plus import list_kernels
from index.iqf_plus.layout import Lists
from index.iqf_plus.list_kernels import NARROW_MAX, pair_key, wide_key
from index.iqf_plus.mark_kernels import MANY, keyword_count_of, mark_of, norm_code_of
from index.iqf_plus.node_kernels import INNER, NODE_END, NODE_FREE, rounded
from index.tables import SlotTable
from index.tables.id_map_kernels import NO_KEY, find
from index.tables.norm_kernels import LARGEST
from index.tables.quad_kernels import NO_NODE
from index.tables.run_kernels import NO_RUN, RUN_LEAST
from index.tables.runs import check_runs

_Runs = list[tuple[int, int]]
_FREE = -1


def check(lists: Lists, table: SlotTable) -> None:
    """Verify lists, runs and trees. O(entries).

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    rows = lists.lists[: lists.meta[list_kernels.LIST_END]]
    live = [number for number, row in enumerate(rows) if row["run_count"] != _FREE]
    _check_numbers(lists, live)
    runs: _Runs = []
    groups: list[int] = []
    found: dict[int, list[int]] = {}
    for number in live:
        slots = _list_slots(lists, number, table, runs, groups)
        found[int(rows[number]["key"])] = slots
        if not slots or len(set(slots)) != len(slots):
            raise InconsistentIndexError(f"list {rows[number]['key']} is empty, or has duplicate objects")
    check_runs(lists.runs, runs)
    _check_groups(lists, groups)
    long = {int(rows[number]["key"]) for number in live if rows[number]["root"] != NO_NODE}
    expected = _expected(table, long)
    if {key: sorted(slots) for key, slots in found.items()} != expected:
        raise InconsistentIndexError("objects are in the wrong lists")
    if lists.meta[list_kernels.RIPENED] or lists.meta[list_kernels.RIPENED_OTHERS]:
        raise InconsistentIndexError("the conversion of a keyword is unfinished")


def _expected(table: SlotTable, long: set[int]) -> dict[int, list[int]]:
    """Return the objects that belong to each key."""
    expected: dict[int, list[int]] = defaultdict(list)
    for slot in table.used().tolist():
        words = table.keywords(slot).tolist()
        if len(words) > NARROW_MAX:
            keys = [wide_key(word) for word in words]
        else:
            pairs = combinations([word for word in words if word in long], 2)
            keys = words + [pair_key(one, other) for one, other in pairs]
        for key in keys:
            expected[key].append(slot)
    return dict(expected)


def _check_numbers(lists: Lists, live: list[int]) -> None:
    """Verify that keys map to their lists, and that the other rows are free."""
    for number in live:
        if find(lists.keys, lists.values, int(lists.lists[number]["key"])) != number:
            raise InconsistentIndexError(f"key {lists.lists[number]['key']} has no list")
    free_count, number = 0, int(lists.meta[list_kernels.LIST_FREE])
    while number != list_kernels.NO_LIST:
        free_count, number = free_count + 1, int(lists.lists[number]["start"])
    used = int(lists.meta[list_kernels.LIST_END])
    if len(live) + free_count != used or len(live) != (lists.keys != NO_KEY).sum():
        raise InconsistentIndexError("IQF+ has a wrong count of lists")


def _list_slots(lists: Lists, number: int, table: SlotTable, runs: _Runs, groups: list[int]) -> list[int]:
    """Return the objects of a list; record its runs and the first nodes of its groups."""
    row = lists.lists[number]
    if (row["root"] == NO_NODE) == (row["size_class"] == NO_RUN):
        raise InconsistentIndexError(f"list {row['key']} must have either a run or a tree")
    if row["root"] == NO_NODE:
        count = int(row["run_count"])
        if count > lists.meta[list_kernels.LONG_MIN]:
            raise InconsistentIndexError(f"list {row['key']} is too long not to have a tree")
        return _run_slots(lists, int(row["start"]), count, int(row["size_class"]), table, runs)
    root = int(row["root"])
    groups.append(root)
    slots = _tree_slots(lists, root, table, runs, groups)
    if len(slots) != row["tree_count"] or row["run_count"] != 0:
        raise InconsistentIndexError(f"list {row['key']} has a wrong count of entries")
    return slots


def _run_slots(
    lists: Lists, start: int, count: int, size_class: int, table: SlotTable, runs: _Runs
) -> list[int]:
    """Return the objects of a run; verify that its entries agree with them."""
    runs.append((start, size_class))
    if not 0 < count <= RUN_LEAST << size_class:
        raise InconsistentIndexError(f"the run at {start} overflows or is empty")
    slots: list[int] = []
    for entry in lists.runs.records[start : start + count]:
        slot = int(entry["slot"])
        place = table.rows[slot]
        off_m = 0.0
        for name in ("x_m", "y_m"):
            off_m += abs(float(place[name]) - float(entry[name]))
            if rounded(float(place[name])) != float(entry[name]):
                raise InconsistentIndexError(f"an entry of slot {slot} is in a wrong place")
        mark = mark_of(table.keywords(slot), float(place["norm2"]))
        if entry["mark"] != mark or off_m > lists.slack_m[0]:
            raise InconsistentIndexError(f"an entry of slot {slot} has a wrong mark")
        slots.append(slot)
    return slots


def _tree_slots(lists: Lists, node: int, table: SlotTable, runs: _Runs, groups: list[int]) -> list[int]:
    """Return the objects below a node; verify that they agree with its cell and its fields."""
    row = lists.nodes[node]
    x_m, y_m, half_m = (float(row[name]) for name in ("x_m", "y_m", "half_m"))
    below, least, slots = int(row["below"]), (MANY, LARGEST), []
    if row["count"] == INNER:
        groups.append(below)
        for child in range(below, below + 4):
            other = lists.nodes[child]
            side = (1 if (child - below) % 2 else -1, 1 if child - below >= 2 else -1)  # noqa: PLR2004
            middle = (x_m + side[0] * half_m / 2, y_m + side[1] * half_m / 2, half_m / 2)
            if (float(other["x_m"]), float(other["y_m"]), float(other["half_m"])) != middle:
                raise InconsistentIndexError(f"node {child} is not a quarter of node {node}")
            slots += _tree_slots(lists, child, table, runs, groups)
            least = _least(least, (int(other["keyword_min"]), int(other["norm_min"])))
    elif row["count"] > 0:
        slots = _run_slots(lists, below, int(row["count"]), int(row["size_class"]), table, runs)
        for entry in lists.runs.records[below : below + int(row["count"])]:
            coordinates = ((x_m, float(entry["x_m"])), (y_m, float(entry["y_m"])))
            if not all(centre - half_m <= one < centre + half_m for centre, one in coordinates):
                raise InconsistentIndexError(f"an entry of leaf {node} is outside the leaf")
            mark = int(entry["mark"])
            least = _least(least, (keyword_count_of(mark), norm_code_of(mark)))
    elif row["size_class"] != NO_RUN:
        raise InconsistentIndexError(f"leaf {node} is empty and has a run")
    if (row["keyword_min"], row["norm_min"]) != least:
        raise InconsistentIndexError(f"node {node} has a wrong minimum")
    return slots


def _least(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), min(one[1], other[1])


def _check_groups(lists: Lists, used: list[int]) -> None:
    """Verify that used and free groups together are all nodes."""
    free, group = [], int(lists.meta[NODE_FREE])
    while group != NO_NODE:
        free.append(group)
        group = int(lists.nodes[group]["below"])
    if sorted([*used, *free]) != list(range(0, int(lists.meta[NODE_END]), 4)):
        raise InconsistentIndexError("IQF+ has a wrong count of nodes")
