"""Chains of chunks: the clauses of nodes to be built.

A clause that has left its place meanwhile is recognised by its generation, and skipped in its turn.
"""

from __future__ import annotations

from index.published.ap_tree import layout as L
from index.published.ap_tree.layout import Build, Chunks, Tree
from safe_region.jit import leaf


@leaf
def lacks_chunks(tree: Tree, chunks: Chunks, count: int) -> bool:
    """Return whether fewer chunks are free."""
    free = chunks.links.shape[0] - chunks.ends[L.CHUNK_END] + chunks.ends[L.FREE_CHUNK_COUNT]
    if free >= count:
        return False
    tree.meta[L.CHUNKS_NEEDED] = count
    return True


@leaf
def add_to_chain(chunks: Chunks, head: int, slot: int, generation: int) -> int:
    """Add a clause to a chain; return its first chunk. The caller has verified the capacity."""
    if head == L.NOTHING or chunks.sizes[head] == L.CHUNK_LENGTH:
        added = int(chunks.ends[L.FREE_CHUNK])
        if added == L.NOTHING:
            added = int(chunks.ends[L.CHUNK_END])
            chunks.ends[L.CHUNK_END] += 1
        else:
            chunks.ends[L.FREE_CHUNK] = chunks.links[added]
            chunks.ends[L.FREE_CHUNK_COUNT] -= 1
        chunks.links[added] = head
        chunks.sizes[added] = 0
        head = added
    place = head * L.CHUNK_LENGTH + int(chunks.sizes[head])
    chunks.slots[place] = slot
    chunks.generations[place] = generation
    chunks.sizes[head] += 1
    return head


@leaf
def drop_chunk(chunks: Chunks, chunk: int) -> int:
    """Free the first chunk of a chain; return the next."""
    following = int(chunks.links[chunk])
    chunks.links[chunk] = chunks.ends[L.FREE_CHUNK]
    chunks.ends[L.FREE_CHUNK] = chunk
    chunks.ends[L.FREE_CHUNK_COUNT] += 1
    return following


@leaf
def add_pending(tree: Tree, build: Build, node: int, slot: int) -> None:
    """Add a clause to a pending node."""
    row = tree.nodes[node]
    generation = int(tree.clauses[slot]["generation"])
    row["start"] = add_to_chain(build.chunks, int(row["start"]), slot, generation)
    row["count"] += 1
