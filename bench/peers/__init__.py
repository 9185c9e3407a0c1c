"""Structures that one could use in place of our indexes: dicts, shapely, PostgreSQL, posting lists."""
