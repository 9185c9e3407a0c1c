"""A gateway under load."""
