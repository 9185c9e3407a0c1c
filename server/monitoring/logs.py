"""The server's log, as text for people or as JSON for programs, one line per entry.

Data from devices and publishers never gets into it. The server's own entries do not contain it. Of
unexpected errors, whose messages may, the log has only type and place; of entries of libraries, which
repeat such messages, only the first line. `StoreError` and similar errors contain no received data.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

from identity.errors import MetricsPortError
from server.errors import BridgeError, StoreError

_OURS = (
    *("server", "cluster", "gateway", "identity", "nearcast"),
    *("safe_region", "engine", "index", "feeds", "cli"),
)
_SILENT = ("opentelemetry", "urllib3")
"""Libraries whose entries have the address to which traces are sent, which may be secret. `tracing` logs
whether they can be sent."""
_HARMLESS = (StoreError, BridgeError, MetricsPortError, OSError)
"""Errors whose messages are about files, addresses and the system."""
_FRAMES_MAX = 20


def begin_logging(level: str, log_format: Literal["text", "json"]) -> None:
    """Write the log of this process to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    handler.addFilter(lambda record: record.name.partition(".")[0] not in _SILENT)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    sys.excepthook = _log_end


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log the error that ends the process, in place of a traceback with its message."""
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger(__name__).critical("the server terminates", exc_info=(kind, error, trace))


def record_text(record: logging.LogRecord) -> str:
    """Return the message of an entry, without parts that may contain data of a caller."""
    message = record.getMessage()
    is_ours = record.name.partition(".")[0] in _OURS
    return message if is_ours else message.partition("\n")[0]


def error_text(error: BaseException) -> str:
    """Return the text for the log about an error: its type, and its message if that is harmless."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, _HARMLESS) else name


def places(error: BaseException) -> list[str]:
    """Return the places where an error was raised, the innermost last: file, line, function."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


class TextFormatter(logging.Formatter):
    """Formats an entry as a line for people; for an error, further lines show where it was raised."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line."""
        record.message = record_text(record)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's
        """Return type and places, without received data."""
        error = ei[1] if isinstance(ei, tuple) else None
        if not isinstance(error, BaseException):
            return ""
        return "\n".join([error_text(error), *(f"  {place}" for place in places(error))])


class JsonFormatter(logging.Formatter):
    """Formats an object per line: `time`, `level`, `logger`, `message`; for errors `error`, `places`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, object] = {
            "time": time,
            "level": record.levelname,
            "logger": record.name,
            "message": record_text(record),
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            found |= {"error": error_text(error), "places": places(error)}
        return json.dumps(found, ensure_ascii=False)
