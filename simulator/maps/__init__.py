"""Maps: OpenStreetMap files as streets and places.

`osm` reads the file, `roads` and `places` are the rules of what its tags mean, `network` joins ways
into the roads table, `points` makes the places table, `water` outlines sea and lakes.
"""

from simulator.maps.errors import MapError
from simulator.maps.reading import read_map

__all__ = ["MapError", "read_map"]
