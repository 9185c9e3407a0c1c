"""Road networks as lists of nodes and edges, written by the tests themselves."""

from __future__ import annotations

import gzip
import struct


class RoadLists:
    """Nodes with coordinates in any unit, edges between them; written in every layout.

    An edge is (source, target) and values by column for CSV.
    """

    def __init__(self):
        self.nodes = {}
        self.edges = []

    def node(self, number, x, y):
        """Add a node."""
        self.nodes[number] = (x, y)
        return number

    def edge(self, source, target, **values):
        """Add an edge."""
        self.edges.append((source, target, values))

    def length(self, source, target):
        """How far two nodes are apart, in the unit of the coordinates."""
        (x0, y0), (x1, y1) = self.nodes[source], self.nodes[target]
        return ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5

    def write_plain(self, folder, stem="town", *, lengths=None, ending=""):
        """Write .cnode and .cedge; return the path of the nodes."""
        nodes = [f"{number} {x:.6f} {y:.6f}\n" for number, (x, y) in self.nodes.items()]
        lengths = lengths or {}
        edges = [
            f"{number} {source} {target} {lengths.get(number, self.length(source, target)):.6f}\n"
            for number, (source, target, _) in enumerate(self.edges)
        ]
        write(folder / f"{stem}.cedge{ending}", "".join(edges))
        return write(folder / f"{stem}.cnode{ending}", "".join(nodes))

    def write_csv(self, folder, stem="town_", *, header="osmid,x,y", columns=(), ending=""):
        """Write nodes.csv and edges.csv with some columns of values; return the path of the nodes."""
        nodes = [header, *(f"{number},{x:.7f},{y:.7f}" for number, (x, y) in self.nodes.items())]
        edges = [",".join(("u", "v", *columns))]
        for source, target, values in self.edges:
            shown = [str(values.get(column, "")) for column in columns]
            edges.append(",".join((str(source), str(target), *shown)))
        write(folder / f"{stem}edges.csv{ending}", "\n".join(edges) + "\n")
        return write(folder / f"{stem}nodes.csv{ending}", "\n".join(nodes) + "\n")

    def write_brinkhoff(self, folder, stem="town", *, edge_class=3, lengths=False, ending=""):
        """Write .node and .edge as text; return the path of the nodes."""
        nodes = [f"{number} {x:.0f} {y:.0f} null\n" for number, (x, y) in self.nodes.items()]
        edges = []
        for number, (source, target, values) in enumerate(self.edges):
            length = f"{self.length(source, target):.3f} " if lengths else ""
            edges.append(
                f"{number} {source} {target} {length}{values.get('class', edge_class)} A Street\n"
            )
        write(folder / f"{stem}.edge{ending}", "".join(edges))
        return write(folder / f"{stem}.node{ending}", "".join(nodes))

    def write_brinkhoff_binary(self, folder, stem="town", *, edge_class=3, ending=""):
        """Write .node and .edge in the generator's binary form; return the path of the nodes."""
        nodes = b"".join(
            _name(number) + struct.pack(">qii", number, round(x), round(y))
            for number, (x, y) in self.nodes.items()
        )
        edges = b"".join(
            struct.pack(">qq", source, target)
            + _name(number)
            + struct.pack(">qi", number, values.get("class", edge_class))
            for number, (source, target, values) in enumerate(self.edges)
        )
        write(folder / f"{stem}.edge{ending}", edges)
        return write(folder / f"{stem}.node{ending}", nodes)

    def write_dimacs(self, folder, stem="town", *, per_unit=1.0, weights_per_unit=1.0, ending=""):
        """Write .gr and .co; return the path of the arcs."""
        nodes = [f"p aux sp co {len(self.nodes)}\n"]
        for number, (x, y) in self.nodes.items():
            nodes.append(f"v {number} {x * per_unit:.0f} {y * per_unit:.0f}\n")
        arcs = ["c a town\n", "c\n", f"p sp {len(self.nodes)} {len(self.edges)}\n"]
        for source, target, values in self.edges:
            length = values.get("length", self.length(source, target))
            arcs.append(f"a {source} {target} {length * weights_per_unit:.0f}\n")
        write(folder / f"{stem}.co{ending}", "".join(nodes))
        return write(folder / f"{stem}.gr{ending}", "".join(arcs))


def _name(number):
    """A name behind its length; every third has none."""
    name = b"" if number % 3 == 0 else f"number {number}".encode()
    return struct.pack(">b", len(name)) + name


def write(path, content):
    """Write a text or bytes, compressed if the name says so; return the path."""
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.name.lower().endswith(".gz") else content)
    return path


def grid(size=5, step=100.0, x0=0.0, y0=0.0, *, both=False):
    """Return a grid of streets: node 1 + i * size + j lies at (x0 + j * step, y0 + i * step).

    Each street is one edge, or with `both` one in each direction.
    """
    lists = RoadLists()
    for i in range(size):
        for j in range(size):
            lists.node(1 + i * size + j, x0 + j * step, y0 + i * step)
    for i in range(size):
        for j in range(size):
            here = 1 + i * size + j
            neighbours = ([here + 1] if j < size - 1 else []) + ([here + size] if i < size - 1 else [])
            for there in neighbours:
                lists.edge(here, there)
                if both:
                    lists.edge(there, here)
    return lists


LON, LAT = 14.5, 35.9
STEP_DEG = 0.001
"""About 90 m from west to east and 111 m from south to north."""


def degree_grid(*, both=True):
    """A grid in degrees."""
    return grid(step=STEP_DEG, x0=LON, y0=LAT, both=both)
