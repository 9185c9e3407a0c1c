"""Geometry and scoring: whether a device may move to p without telling anyone.

The device-side half (`frame`, `scoring`, `anchored`, `ranges`), the `oracle` and the shapes of ranges and
areas (`shapes`, `polygon_validity`) are plain Python and need no package beyond the standard library; so
are what devices and the server share besides (`keywords`, `reasons`, `steady_clock`). The kernels (`jit`,
`scoring_kernels`, `shape_kernels`) need numba, the pictures (`polygon`) shapely; both are imported only
by those who use them.
"""
