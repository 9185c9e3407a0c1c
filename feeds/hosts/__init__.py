"""Hosts of a cluster: looked at before work begins, and small tasks on all of them."""
