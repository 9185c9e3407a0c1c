"""Measure the cost of authentication, and the effect of an intruder on honest devices."""
