"""Rows of feeds and of results as arrays, and as bytes."""
