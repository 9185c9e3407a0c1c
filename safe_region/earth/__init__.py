"""Positions and shapes in degrees, their projection onto the plane, and distances on the ground.

`frame` has the service area and the projection, `shapes` the ranges and areas of users, `ground` the
distances on the ellipsoid, and `distortion` the error of distances on the plane. Plain Python.
"""
