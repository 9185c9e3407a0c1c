"""The errors of the server: refusals of commands, and parts of it that cannot be used."""

from __future__ import annotations

from identity.refusal import Reason, RefusalError

__all__ = ["Reason", "RefusalError", "StoreError"]


class StoreError(Exception):
    """The store cannot be used: it is of another frame or version, in use, damaged or full."""


class BridgeError(Exception):
    """The source or the sink cannot be used."""


class MetricsPortError(Exception):
    """The server cannot listen on the port for metrics."""


class TracingError(Exception):
    """Traces are requested and cannot be made."""
