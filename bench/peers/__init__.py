"""What one would write, or take, in place of our indexes: dicts, shapely, PostgreSQL, posting lists."""
