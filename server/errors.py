"""The errors of parts of a server that cannot be used.

A refusal of a command is the exception of the SDK, `nearcast.errors.RefusedError`: the field, its wrong
value, and the allowed values. The transport turns it into status codes, ErrorInfo and rejection messages.
"""

from __future__ import annotations

from typing import Any

from nearcast.errors import Reason, RefusedError


class StoreError(Exception):
    """The store cannot be used: it is of another frame or version, in use, damaged or full."""

    def refusal_of(self, _mutation: Any) -> RefusedError | None:  # noqa: ANN401 - of `server.store`
        """Return the refusal of a command with a mutation that was not committed; None if it was."""
        return RefusedError(Reason.INTERNAL, "store", "not writable", "writable; try again later")


class BridgeError(Exception):
    """The source or the sink cannot be used."""


class TracingError(Exception):
    """Traces are requested and cannot be made."""


def weights_pending(generation: int) -> RefusedError:
    """Return the refusal of a table of weights while the last one is coming into force."""
    return RefusedError(Reason.TOO_MANY, "idf", f"{generation} is coming into force", "one at a time")


def too_many_windows(count_max: int) -> RefusedError:
    """Return the refusal of a window when `count_max` different ones are in use."""
    return RefusedError(
        Reason.TOO_MANY,
        "spec.window",
        f"{count_max} different ones are in use",
        f"one of these, or at most {count_max}",
    )
