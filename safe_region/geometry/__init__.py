"""Shapes on the plane, in metres, and the decisions whether they meet.

Plain Python: `shapes` defines circles, rectangles and polygons, `areas` measures distances to them,
`polygon_validity` finds the flaw of a polygon with `edge_sweep` and `exact_geometry`. Kernels:
`orientation_kernels` decides exactly on which side of a line a point lies; `segment_kernels`,
`shape_kernels` and `validity_kernels` build on it, and `polygon_checks` calls the last.
"""
