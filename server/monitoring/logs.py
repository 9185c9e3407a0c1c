"""The server's log, as text for people or as JSON for programs, one line an entry.

What devices and publishers send never gets into it. Our own entries do not say it, and of errors that
nobody expected, whose messages may, the log has type and place alone; of other people's entries, which
repeat such messages, the first line. `StoreError` and the like say nothing of what was sent.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

from server.errors import BridgeError, MetricsPortError, StoreError

_OURS = ("server", "safe_region", "engine", "index", "feeds", "cli")
_HARMLESS = (StoreError, BridgeError, MetricsPortError, OSError)
"""Errors whose messages are of files, addresses and the system."""
_FRAMES_MAX = 20


def begin_logging(level: str, log_format: Literal["text", "json"]) -> None:
    """Write the log of this process to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    sys.excepthook = _log_end


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log what ends the process, in place of a traceback with what it says."""
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger(__name__).critical("the server ends", exc_info=(kind, error, trace))


def record_text(record: logging.LogRecord) -> str:
    """Return the message of an entry, but for what may be of a caller."""
    message = record.getMessage()
    is_ours = record.name.partition(".")[0] in _OURS
    return message if is_ours else message.partition("\n")[0]


def error_text(error: BaseException) -> str:
    """Return what of an error may be in a log: its type, its message if that is harmless."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, _HARMLESS) else name


def places(error: BaseException) -> list[str]:
    """Return where an error was raised, the innermost place last: file, line, function."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


class TextFormatter(logging.Formatter):
    """A line for people; of an error a few more, with where it was raised."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line."""
        record.message = record_text(record)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's
        """Return type and places, without what was sent."""
        error = ei[1] if isinstance(ei, tuple) else None
        if not isinstance(error, BaseException):
            return ""
        return "\n".join([error_text(error), *(f"  {place}" for place in places(error))])


class JsonFormatter(logging.Formatter):
    """An object a line: `time`, `level`, `logger`, `message`; of an error also `error` and `places`."""

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
