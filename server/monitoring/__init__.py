"""Monitoring of a running server for operators: readings, metrics, and their names."""
