"""Errors of traces."""


class TraceError(Exception):
    """Files of traces cannot be used; the message names them and the problem."""
