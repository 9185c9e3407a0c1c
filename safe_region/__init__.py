"""Decide whether a device may move to p without a report: geometry and scoring.

The modules of the device side (`frame`, `scoring`, `anchored`, `ranges`), the `oracle` and the shapes of
ranges and areas (`shapes`, `polygon_validity`) are plain Python and need only the standard library. So do
the other modules that devices and the server share (`keywords`, `reasons`, `steady_clock`). The kernels
(`jit`, `scoring_kernels`, `shape_kernels`) need numba, and the pictures (`polygon`) need shapely. Only
modules that use these packages import them.
"""
