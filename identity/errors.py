"""The errors of what a server and a gateway share and cannot use."""

from __future__ import annotations


class MetricsPortError(Exception):
    """A program cannot listen on the port for metrics."""
