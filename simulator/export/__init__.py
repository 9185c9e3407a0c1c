"""Tables of a simulation for programs that draw maps: GeoJSON (RFC 7946) and GeoParquet 1.1.

`features` gives rows their geometry, `wkb` makes bytes of it, `files` lets Spark write parts and joins
these to one file.
"""
