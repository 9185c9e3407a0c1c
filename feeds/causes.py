"""Extract the cause of an error of Spark: one line of its two tracebacks."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

_ERROR = re.compile(r"([\w$]+\.)*\w*(Error|Exception)\b.*?: ")
_CAUSED = "Caused by: "
_JAVA = ": "
"""Py4J writes this before an error of Java."""
_CARRIERS = "py4j.", "org.apache.", "java."
"""Packages whose errors only wrap another error."""
_CRASHED = "Python worker exited unexpectedly"
_KILLED = (
    "a Python worker process was killed, usually because the memory of its host, or the folder "
    "--memory, is full"
)


def cause_of(error: BaseException) -> str:
    """Return the last line that names an error of Python, else one of Java, else the first line.

    A killed worker process leaves no error. For it, return an explanation.
    """
    message = error.getMessage() if isinstance(error, PySparkException) else None
    lines = [line.strip() for line in (message or str(error)).splitlines() if line.strip()]
    caused = [line.removeprefix(_CAUSED) for line in lines if line.startswith(_CAUSED)]
    named = [line for line in lines if _ERROR.match(line) and not line.startswith(_CARRIERS)]
    if not named and any(_CRASHED in line for line in lines):
        return _KILLED
    java = [line.removeprefix(_JAVA) for line in lines if line.startswith(_JAVA)]
    return (named[-1:] or caused[-1:] or java[:1] or lines[:1] or [repr(error)])[0]
