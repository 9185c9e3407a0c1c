"""What is wrong, of an error of Spark's: one line of the two tracebacks that it has."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

_ERROR = re.compile(r"([\w$]+\.)*\w*(Error|Exception)\b.*?: ")
_CAUSED = "Caused by: "
_JAVA = ": "
"""Py4J puts it before an error of Java's."""
_CARRIERS = "py4j.", "org.apache.", "java."
"""Errors of these say that there was another."""
_CRASHED = "Python worker exited unexpectedly"
_KILLED = (
    "a worker process of Python was killed, as the system does where a host's memory, or the folder "
    "--memory, is full"
)


def cause_of(error: BaseException) -> str:
    """Return the last line that names an error of Python's, else of Java's, else the first one.

    Of a worker process that was killed there is no error: then what that means.
    """
    message = error.getMessage() if isinstance(error, PySparkException) else None
    lines = [line.strip() for line in (message or str(error)).splitlines() if line.strip()]
    caused = [line.removeprefix(_CAUSED) for line in lines if line.startswith(_CAUSED)]
    named = [line for line in lines if _ERROR.match(line) and not line.startswith(_CARRIERS)]
    if not named and any(_CRASHED in line for line in lines):
        return _KILLED
    java = [line.removeprefix(_JAVA) for line in lines if line.startswith(_JAVA)]
    return (named[-1:] or caused[-1:] or java[:1] or lines[:1] or [repr(error)])[0]
