"""Checks of a simulation: a Spark job that verifies its tables."""
