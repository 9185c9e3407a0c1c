"""Measure the report rates of devices, and the traffic to them."""
