"""Faults of a cluster of real processes: nodes and servers of their log. An audit follows each fault."""
