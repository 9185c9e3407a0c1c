"""Faults of a cluster of real processes, nodes and servers of their log, with an audit after each."""
