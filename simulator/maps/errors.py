"""Errors of maps."""


class MapError(Exception):
    """A map cannot be used; the message names the file and the problem."""
