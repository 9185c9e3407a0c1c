"""Decide whether a device may move to p without a report.

`earth` and `geometry` have positions and shapes, on Earth and on the plane; `scoring` the lengths of
objects; `regions` the tests of devices; `oracle` the results from the definition. Modules whose names end
in `kernels` need numba, and `jit` compiles and caches them; `geometry.polygon_checks` calls some. The
pictures of regions (`regions.polygon`, `regions.local`) need shapely. Everything else is plain Python,
needs only the standard library, and may run on devices. The SDK and the server, which do not import each
other, share the modules beside the folders.
"""
