"""Measure the time and the memory of a server's recovery from its store."""
