"""Boxes of nodes, computed again. Operations: tighten O(children)."""

from __future__ import annotations

from index.published.ir_tree.layout import Tree
from index.tables.box_kernels import cover, cover_row, empty
from index.tables.buckets.layout import Objects
from safe_region.jit import leaf


@leaf
def tighten(tree: Tree, node: int, objects: Objects) -> None:
    """Shrink the box of a node to its children."""
    row = tree.nodes[node]
    empty(row)
    for i in range(row["count"]):
        child = int(tree.children[node, i])
        if row["is_leaf"]:
            x_m, y_m = float(objects.rows[child]["x_m"]), float(objects.rows[child]["y_m"])
            cover(row, x_m, y_m, x_m, y_m)
        else:
            cover_row(row, tree.nodes[child])
