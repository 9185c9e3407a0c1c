"""The invariants of the lists of an AP+-Tree, from the definitions. For tests; slow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from index.batches import KeywordIds
from index.contracts import InconsistentIndexError
from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Numbers, Row, Tree
from index.tables.signature_kernels import signature_of

_BOX = ("x1_m", "y1_m", "x2_m", "y2_m")

Held = dict[int, dict[int, int]]
"""By list: by slot of a live object the position in its codes."""


def check_lists(tree: Tree, lists: Lists, used: Numbers) -> None:
    """Verify that every live object is in exactly its lists, and that no item or chunk is lost.

    Raises
    ------
    InconsistentIndexError
        If an invariant is violated; the message names it.
    """
    state = lists.state
    if state[L.USED]:
        raise InconsistentIndexError("scratch data of the last object remains")
    held = _held(tree, lists)
    root, new = int(tree.meta[T.ROOT]), int(tree.meta[T.JOB_NEW])
    nodes = set(_below(tree, root))
    expected: Held = {}
    begins = _expect(tree, lists, held, used, expected)
    if new != T.NOTHING:
        beside = set(_below(tree, new))
        if state[L.CARRY_AGAIN]:  # all present items are to be removed
            held = {one: slots for one, slots in held.items() if one // L.LISTS not in beside}
        elif state[L.CARRIES]:
            _expect_beside(tree, lists, held, begins, expected)
        nodes |= beside
    found = {one: slots for one, slots in held.items() if one // L.LISTS in nodes and slots}
    for one in {**found, **expected}:
        if found.get(one) != expected.get(one):
            there, due = found.get(one), expected.get(one)
            raise InconsistentIndexError(f"list {one} has {there}, must have {due}")
    _check_strays(lists, held, nodes)


def _expect(tree: Tree, lists: Lists, held: Held, used: Numbers, expected: Held) -> dict[int, int]:
    """Compute the expected lists; return the objects in the rebuilt subtree, with positions in codes."""
    begins: dict[int, int] = {}
    old = int(tree.meta[T.JOB_OLD])
    for slot in used.tolist():
        if lists.objects["expiry_ms"][slot] <= lists.state[L.NOW_MS]:
            continue
        for node, one, begin in _places(tree, lists, tree.order, held, int(tree.meta[T.ROOT]), slot, 0):
            if one != T.NOTHING:
                expected.setdefault(one, {})[slot] = begin
            if node == old:
                begins[slot] = begin
    return begins


def _expect_beside(tree: Tree, lists: Lists, held: Held, begins: dict[int, int], expected: Held) -> None:
    """Compute the expected lists of the new subtree."""
    new = int(tree.meta[T.JOB_NEW])
    is_whole = tree.meta[T.JOB_OLD] == tree.meta[T.ROOT]
    for slot, begin in begins.items():
        is_marked = lists.objects["carried"][slot] == lists.state[L.CARRY_MARK]
        if slot < lists.state[L.CARRY_AT] or is_marked:
            first = 0 if is_whole else begin
            for _, one, there in _places(tree, lists, tree.job_order, held, new, slot, first):
                if one != T.NOTHING:
                    expected.setdefault(one, {})[slot] = there


def _check_strays(lists: Lists, held: Held, nodes: set[int]) -> None:
    """Verify that live objects are in no lists of other nodes, except those that are being freed."""
    if lists.state[L.WALK_COUNT] == 0 and any(
        slots for one, slots in held.items() if one // L.LISTS not in nodes
    ):
        raise InconsistentIndexError("an object is in a list of a missing node")


def _below(tree: Tree, top: int) -> Iterator[int]:
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        row = tree.nodes[node]
        if row["kind"] in (T.KEYWORDS, T.SPACE):
            start = int(row["start"])
            children = tree.parts["child"][start : start + int(row["count"])].tolist()
            stack += [child for child in children if child != T.NOTHING]


def _words(lists: Lists, slot: int) -> KeywordIds:
    start = int(lists.objects["keyword_start"][slot])
    return lists.pool[start : start + int(lists.objects["keyword_count"][slot])]


def _codes(lists: Lists, order: Numbers, slot: int) -> list[int]:
    """Return the codes of an object, increasing."""
    words = _words(lists, slot)
    there = words[words + 1 < len(order)]
    return sorted((order[there + 1][order[there + 1] > 0] - 1).tolist())


def _places(
    tree: Tree, lists: Lists, order: Numbers, held: Held, top: int, slot: int, first: int
) -> Iterator[tuple[int, int, int]]:
    """Yield nodes that an object reaches, its list there, and its position in the codes."""
    codes = _codes(lists, order, slot)
    has_strange = len(codes) < len(_words(lists, slot))
    stack = [(top, first)]
    while stack:
        node, begin = stack.pop()
        row = tree.nodes[node]
        kept = L.LISTS * node + L.KEPT
        if row["kind"] == T.LEAF or slot in held.get(kept, {}):
            yield node, kept, begin
            continue
        parts = dict(_parts_of(tree, row, lists.objects[slot], codes, begin))
        start = int(row["start"])
        children = {number: int(tree.parts["child"][start + number]) for number in parts}
        waits = T.NOTHING in children.values()
        if row["kind"] == T.KEYWORDS:
            cuts = tree.parts[start + 1 : start + int(row["count"])]
            is_hit = [((cuts["low"] <= code) & (code <= cuts["high"])).any() for code in codes[begin:]]
            waits = waits or has_strange or not all(is_hit)
        yield node, L.LISTS * node + L.WAITING if waits else T.NOTHING, begin
        stack += [(child, parts[number]) for number, child in children.items() if child != T.NOTHING]


def _parts_of(tree: Tree, row: Row, one: Row, codes: list[int], begin: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a node that an object belongs to, and its position in the codes there."""
    yield T.DUMMY, begin
    start, count = int(row["start"]), int(row["count"])
    parts = tree.parts[start : start + count]
    if row["kind"] == T.KEYWORDS:
        for number in range(1, count):
            hits = [
                i
                for i in range(begin, len(codes))
                if parts[number]["low"] <= codes[i] <= parts[number]["high"]
            ]
            if hits:
                yield number, hits[0] + 1
        return
    columns = int(row["x_count"])
    spans = []
    for begins, low, high in (
        (parts["low"][1 : 1 + columns], one["x1_m"], one["x2_m"]),
        (parts["high"][1 : 1 + (count - 1) // columns], one["y1_m"], one["y2_m"]),
    ):
        first = max(0, int(np.searchsorted(begins, low, side="right")) - 1)
        last = max(0, int(np.searchsorted(begins, high, side="right")) - 1)
        spans.append(range(first, last + 1))
    for line in spans[1]:
        for column in spans[0]:
            yield 1 + line * columns + column, begin


def _held(tree: Tree, lists: Lists) -> Held:
    """Return the content of lists; verify items, chunks and counts."""
    state, rows = lists.state, lists.objects
    chunks: list[int] = []
    held: Held = {}
    copies, stops = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    total, dead = 0, 0
    for one in range(L.LISTS * int(tree.meta[T.NODE_END])):
        mine: dict[int, int] = {}
        is_parted = tree.nodes["kind"][one // L.LISTS] in (T.KEYWORDS, T.SPACE)
        for place in _item_places(lists, one, chunks):
            item = lists.items[place]
            slot = int(item["slot"])
            total += 1
            if item["generation"] != rows["generation"][slot]:
                dead += 1
                continue
            _check_item(lists, item)
            copies[slot] += 1
            stops[slot] += is_parted and one % L.LISTS == L.KEPT
            if rows["expiry_ms"][slot] <= state[L.NOW_MS]:
                continue
            if slot in mine:
                raise InconsistentIndexError(f"object {slot} occurs twice in list {one}")
            mine[slot] = int(item["begin"])
        held[one] = mine
    if total != state[L.ITEM_TOTAL] or dead != state[L.DEAD_TOTAL]:
        raise InconsistentIndexError("the lists have a wrong count of items")
    is_there = rows["keyword_count"] > 0
    if (copies != rows["copies"])[is_there].any() or (stops != rows["stops"])[is_there].any():
        raise InconsistentIndexError("an object has a wrong count of copies")
    _check_chunks(lists, chunks)
    return held


def _item_places(lists: Lists, one: int, chunks: list[int]) -> Iterator[int]:
    """Yield the places of the items of a list; record its chunks."""
    count = int(lists.counts[one])
    chunk = int(lists.heads[one]) - 1
    size = (count - 1) % L.CHUNK_LENGTH + 1
    while chunk != T.NOTHING:
        chunks.append(chunk)
        yield from range(chunk * L.CHUNK_LENGTH, chunk * L.CHUNK_LENGTH + size)
        count -= size
        chunk = int(lists.links[chunk]) - 1
        size = L.CHUNK_LENGTH
    if count != 0:
        raise InconsistentIndexError(f"list {one} has a wrong count of items")


def _check_item(lists: Lists, item: Row) -> None:
    slot = int(item["slot"])
    row = lists.objects[slot]
    is_covered = all(item[name] <= row[name] for name in _BOX[:2]) and all(
        item[name] >= row[name] for name in _BOX[2:]
    )
    is_close = all(
        abs(np.float32(row[name]) - item[name]) <= np.spacing(abs(item[name])) for name in _BOX
    )
    if not is_covered or not is_close or item["signature"] != signature_of(_words(lists, slot)):
        raise InconsistentIndexError(f"an item contradicts its object {slot}")


def _check_chunks(lists: Lists, used: list[int]) -> None:
    """Verify that used and free chunks together are all chunks, none of them twice."""
    free = []
    chunk = int(lists.state[L.FREE_CHUNK]) - 1
    while chunk != T.NOTHING:
        free.append(chunk)
        chunk = int(lists.links[chunk]) - 1
    if len(free) != lists.state[L.FREE_CHUNK_COUNT] or sorted(used + free) != list(
        range(lists.state[L.CHUNK_END])
    ):
        raise InconsistentIndexError("chunks are missing or used twice")
