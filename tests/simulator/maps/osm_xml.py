"""OpenStreetMap files, written by the tests themselves."""

from __future__ import annotations

import bz2
import gzip
from xml.sax.saxutils import quoteattr

LON, LAT = 14.5, 35.9
STEP_DEG = 0.001
"""About 90 m from west to east and 111 m from south to north."""


def _tags(tags):
    return "".join(f"<tag k={quoteattr(key)} v={quoteattr(value)}/>" for key, value in tags.items())


class OsmFile:
    """Nodes on a grid, ways between them, relations; written in any order and compression."""

    def __init__(self):
        self.nodes = {}
        self.ways = []
        self.relations = []

    def node(self, number, x, y, **tags):
        """Add a node at x, y steps from the origin."""
        position = f'lon="{LON + x * STEP_DEG:.7f}" lat="{LAT + y * STEP_DEG:.7f}"'
        self.nodes[number] = f'<node id="{number}" {position}>{_tags(tags)}</node>'
        return number

    def way(self, refs, tags, number=None):
        """Add a way."""
        number = number or 10_000 + len(self.ways)
        inside = "".join(f'<nd ref="{ref}"/>' for ref in refs)
        self.ways.append(f'<way id="{number}">{inside}{_tags(tags)}</way>')
        return number

    def relation(self, members, tags, number=None):
        """Add a relation; a member is (node or way, its number, its role)."""
        number = number or 20_000 + len(self.relations)
        inside = "".join(
            f'<member type="{kind}" ref="{ref}" role="{role}"/>' for kind, ref, role in members
        )
        self.relations.append(f'<relation id="{number}">{inside}{_tags(tags)}</relation>')
        return number

    def grid(self, size=5, first=1, x0=0.0, y0=0.0, **tags):
        """Add a grid of streets: node first + i * size + j lies at (x0 + j, y0 + i)."""
        tags = {"highway": "residential"} | tags
        for i in range(size):
            for j in range(size):
                self.node(first + i * size + j, x0 + j, y0 + i)
        for i in range(size):
            self.way([first + i * size + j for j in range(size)], tags)
            self.way([first + j * size + i for j in range(size)], tags)

    def text(self, *, ways_first=False):
        """The file as XML."""
        nodes, ways = "".join(self.nodes.values()), "".join(self.ways)
        relations = "".join(self.relations)
        body = relations + ways + nodes if ways_first else nodes + ways + relations
        return f'<?xml version="1.0" encoding="UTF-8"?><osm version="0.6">{body}</osm>'

    def write(self, path, **options):
        """Write the file, compressed as its suffix says; return its path."""
        content = self.text(**options).encode()
        if path.suffix == ".gz":
            content = gzip.compress(content)
        if path.suffix == ".bz2":
            content = bz2.compress(content)
        path.write_bytes(content)
        return path


def town():
    """A grid of streets with three places."""
    file = OsmFile()
    file.grid()
    file.node(101, 1.2, 1.1, amenity="restaurant", name="Da Mario", cuisine="pizza;pasta")
    file.node(102, 2.2, 2.1, shop="bakery", name="Il Forno")
    file.node(103, 3.2, 3.1, amenity="pharmacy")
    return file
