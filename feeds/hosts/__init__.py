"""Hosts of a cluster: checks before work starts, and small tasks on all hosts."""
