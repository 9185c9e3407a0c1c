"""Lists of objects: chains of chunks, with insertion, search and removal of items."""

from __future__ import annotations

from index.published.ap_plus_tree import layout as L
from index.published.ap_plus_tree.layout import Lists
from index.published.ap_tree import layout as T
from index.published.ap_tree.layout import Row, Tree
from index.tables.float32_kernels import lower, upper
from index.tables.signature_kernels import signature_of
from safe_region.jit import leaf


@leaf
def free_chunks(lists: Lists) -> int:
    """Return the number of free chunks."""
    return int(lists.links.shape[0] - lists.state[L.CHUNK_END] + lists.state[L.FREE_CHUNK_COUNT])


@leaf
def lacks_chunks(lists: Lists, count: int) -> bool:
    """Return whether fewer chunks are free."""
    if free_chunks(lists) >= count:
        return False
    lists.state[L.CHUNKS_WANTED] = count
    return True


@leaf
def chunks_for(count: int) -> int:
    """Return the number of chunks that suffice to add this many items to one list."""
    return count // L.CHUNK_LENGTH + 2


@leaf
def first_size(lists: Lists, one: int) -> int:
    """Return the number of items in the first chunk of a list."""
    return (int(lists.counts[one]) - 1) % L.CHUNK_LENGTH + 1


@leaf
def is_alive(lists: Lists, item: Row) -> bool:
    """Return whether the object of an item is present and has not expired."""
    row = lists.objects[item["slot"]]
    return bool(row["generation"] == item["generation"] and row["expiry_ms"] > lists.state[L.NOW_MS])


@leaf
def _write_item(lists: Lists, item: Row, slot: int, begin: int) -> None:
    row = lists.objects[slot]
    start = int(row["keyword_start"])
    item["signature"] = signature_of(lists.pool[start : start + int(row["keyword_count"])])
    item["slot"] = slot
    item["generation"] = row["generation"]
    item["begin"] = begin
    item["x1_m"] = lower(row["x1_m"])
    item["y1_m"] = lower(row["y1_m"])
    item["x2_m"] = upper(row["x2_m"])
    item["y2_m"] = upper(row["y2_m"])


@leaf
def add_item(lists: Lists, one: int, slot: int, begin: int) -> None:
    """Add an object to a list. A chunk must be free."""
    count = int(lists.counts[one])
    if count % L.CHUNK_LENGTH == 0:
        state = lists.state
        chunk = int(state[L.FREE_CHUNK]) - 1
        if chunk == T.NOTHING:
            chunk = int(state[L.CHUNK_END])
            state[L.CHUNK_END] += 1
        else:
            state[L.FREE_CHUNK] = lists.links[chunk]
            state[L.FREE_CHUNK_COUNT] -= 1
        lists.links[chunk] = lists.heads[one]
        lists.heads[one] = chunk + 1
    place = (int(lists.heads[one]) - 1) * L.CHUNK_LENGTH + count % L.CHUNK_LENGTH
    _write_item(lists, lists.items[place], slot, begin)
    lists.counts[one] = count + 1
    lists.objects[slot]["copies"] += 1
    lists.state[L.ITEM_TOTAL] += 1


@leaf
def _give_back_first(lists: Lists, one: int) -> None:
    chunk = int(lists.heads[one]) - 1
    lists.heads[one] = lists.links[chunk]
    lists.links[chunk] = lists.state[L.FREE_CHUNK]
    lists.state[L.FREE_CHUNK] = chunk + 1
    lists.state[L.FREE_CHUNK_COUNT] += 1


@leaf
def is_stop(tree: Tree, one: int) -> bool:
    """Return whether the items of a list are stored nowhere below, although the node has parts."""
    kind = tree.nodes[one // L.LISTS]["kind"]
    return bool(one % L.LISTS == L.KEPT and kind in (T.KEYWORDS, T.SPACE))


@leaf
def drop_item(tree: Tree, lists: Lists, one: int, place: int) -> None:
    """Remove an item from a list; the last one of the first chunk moves to its place.

    So a walk through a list, chunks in their order and each from its last item, misses none.
    """
    item = lists.items[place]
    row = lists.objects[item["slot"]]
    if row["generation"] == item["generation"]:
        row["copies"] -= 1
        if is_stop(tree, one):
            row["stops"] -= 1
    else:
        lists.state[L.DEAD_TOTAL] -= 1
    lists.state[L.ITEM_TOTAL] -= 1
    count = int(lists.counts[one]) - 1
    last = (int(lists.heads[one]) - 1) * L.CHUNK_LENGTH + count % L.CHUNK_LENGTH
    if last != place:
        lists.items[place] = lists.items[last]
    lists.counts[one] = count
    if count % L.CHUNK_LENGTH == 0:
        _give_back_first(lists, one)


@leaf
def find_item(lists: Lists, one: int, slot: int) -> int:
    """Return the place of an object in a list, NOTHING if it is absent. O(items)."""
    generation = lists.objects[slot]["generation"]
    chunk = int(lists.heads[one]) - 1
    size = first_size(lists, one)
    while chunk != T.NOTHING:
        for place in range(chunk * L.CHUNK_LENGTH, chunk * L.CHUNK_LENGTH + size):
            item = lists.items[place]
            if item["slot"] == slot and item["generation"] == generation:
                return place
        chunk = int(lists.links[chunk]) - 1
        size = L.CHUNK_LENGTH
    return T.NOTHING
