"""Maps: reads OpenStreetMap files and road networks as streets and places.

`reading` makes a terrain from files; `files` lists the suffixes of their names. For OpenStreetMap, `osm`
reads the file, `roads` and `places` are the rules for its tags, and `water` outlines sea and lakes. For
road networks, `road_files` reads both lists, `rows` their fields, `placement` converts their coordinates
to degrees, and `streetside` draws places. For both, `network` makes the roads table and `points` the
places table, from the map or from a separate file (`places_file`). Published texts may also come from a
file (`texts_file`).
"""

from simulator.maps.errors import MapError
from simulator.maps.reading import read_map
from simulator.maps.texts_file import read_texts

__all__ = ["MapError", "read_map", "read_texts"]
