"""Benchmarks: the papers' experiments and the peers, by name (`nearcast bench run lamps/table-3`).

An experiment is data (`bench.experiment`); `bench.runner` runs it, `bench.catalogue` has all of them.

Every run is audited by sample against the oracle; a figure without `mismatches` beside it is not one.
"""
