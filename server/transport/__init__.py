"""The transport: the only package of the server that knows wire types. Converts, calls, converts."""

from server.transport.listener import Listener

__all__ = ["Listener"]
