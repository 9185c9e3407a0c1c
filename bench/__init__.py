"""Benchmarks: the papers' experiments and the peers, each by one command (`nearcast bench NAME`).

Every run is audited by sample against the oracle; a figure without `mismatches` beside it is not one.
"""
