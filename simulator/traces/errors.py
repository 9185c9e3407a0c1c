"""What can be wrong with traces."""


class TraceError(Exception):
    """Files of traces that cannot be used; the message names them and says what is wrong."""
