"""Faults of a cluster: nodes and servers of the log as processes, real faults, and an audit after each."""
