"""Exports tables of a simulation for programs that draw maps: GeoJSON (RFC 7946), GeoParquet 1.1.

`features` adds geometry to rows, `wkb` encodes it as bytes, and `files` makes Spark write parts and joins
these to one file.
"""
