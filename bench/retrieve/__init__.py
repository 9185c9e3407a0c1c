"""Find the best objects for a position: object indexes and an inverted file."""
