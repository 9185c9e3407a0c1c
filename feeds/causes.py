"""What is wrong, of an error of Spark's: one line of the two tracebacks that it has."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

_ERROR = re.compile(r"([\w$]+\.)*\w*(Error|Exception)\b.*?: ")
_CAUSED = "Caused by: "


def cause_of(error: BaseException) -> str:
    """Return the last line that names an error of Python's, else of Java's, else the last one."""
    told = error.getMessage() if isinstance(error, PySparkException) else None
    lines = [line.strip() for line in (told or str(error)).splitlines() if line.strip()]
    caused = [line.removeprefix(_CAUSED) for line in lines if line.startswith(_CAUSED)]
    named = [line for line in lines if _ERROR.match(line)]
    return (named or caused or lines or [repr(error)])[-1]
