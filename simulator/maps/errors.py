"""What can be wrong with a map."""


class MapError(Exception):
    """A map that cannot be used; the message names the file and says what is wrong with it."""
