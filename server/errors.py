"""The errors of the server.

A refusal is the same exception as in the SDK: the field, its wrong value, and the allowed values. The
transport turns it into status codes, ErrorInfo and rejection messages.
"""

from __future__ import annotations

from nearcast.errors import RefusedError
from safe_region.reasons import Reason

__all__ = ["Reason", "RefusedError", "StoreError"]


class StoreError(Exception):
    """The store cannot be used: it is of another frame or version, in use, damaged or full."""


class BridgeError(Exception):
    """The source or the sink cannot be used."""


class MetricsPortError(Exception):
    """The server cannot listen on the port for metrics."""


class TracingError(Exception):
    """Traces are requested and cannot be made."""
