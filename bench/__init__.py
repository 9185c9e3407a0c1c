"""Benchmarks: the papers' experiments and the peers, by name (`nearcast bench run lamps/table-3`).

An experiment is data (`bench.experiment`); `bench.runner` runs it, `bench.catalogue` lists all of them. A
sample of every run is audited against the oracle; a figure is valid only with its number of `mismatches`.
"""
