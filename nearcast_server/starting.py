"""Settings and the start of a server in this process. Importing this module imports the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from identity.errors import MetricsPortError
from identity.watched_file import FileError
from nearcast_server.errors import StartError
from server.errors import BridgeError, StoreError, TracingError
from server.main import Server
from server.settings import ServerSettings, load_settings
from server.transport.listener import PortError

FAILURES = (StoreError, PortError, MetricsPortError, BridgeError, TracingError, FileError, OSError)
"""Errors of a start that are about the machine or the settings."""


def settings_of(given: dict[str, Any]) -> ServerSettings:
    """Return the settings of a server.

    Raises
    ------
    StartError
        If a setting is wrong.
    """
    try:
        return load_settings(given)
    except ValidationError as error:
        raise StartError("; ".join(_messages(error))) from None


async def started(given: dict[str, Any]) -> Server:
    """Start a server on the running event loop.

    Raises
    ------
    StartError
        If it cannot be started.
    """
    server = Server(settings_of(given))
    try:
        await server.start()
    except FAILURES as error:
        raise StartError(str(error)) from error
    return server


def _messages(error: ValidationError) -> Iterator[str]:
    """Yield what is wrong with each setting."""
    for one in error.errors():
        if one["type"] == "default_factory_not_called":  # a default that depends on a wrong setting
            continue
        if one["type"] == "value_error":
            yield str(one["ctx"]["error"])
        elif one["type"] == "extra_forbidden":
            yield f"{one['loc'][0]} is no setting"
        else:
            yield f"{one['loc'][0]} is {one['input']!r}: {one['msg']}"
