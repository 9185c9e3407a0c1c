"""Maps: OpenStreetMap files and road networks as streets and places.

`reading` leads from files to a terrain, `files` says what their names end in. Of OpenStreetMap `osm`
reads the file, `roads` and `places` are the rules of what its tags mean, `water` outlines sea and
lakes. Of road networks `road_files` reads both lists, `rows` their fields, `placement` says where they
lie on the Earth, `streetside` draws places. Of both `network` makes the roads table, `points` the places
table, from the map or from a file of their own (`places_file`). What is published may come from a file,
too (`texts_file`).
"""

from simulator.maps.errors import MapError
from simulator.maps.reading import read_map
from simulator.maps.texts_file import read_texts

__all__ = ["MapError", "read_map", "read_texts"]
