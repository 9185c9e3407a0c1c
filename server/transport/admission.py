"""Admission: may this call be answered now, and how it is told if not."""

from __future__ import annotations

from typing import Any

import grpc

from server.counters import Counters
from server.errors import RefusalError
from server.measures import cpu_us
from server.quotas import Account
from server.runtime.charges import Charges
from server.runtime.command_loop import CommandLoop
from server.runtime.lifecycle import require_serving
from server.transport.status import CODES, trailing_metadata

Context = grpc.aio.ServicerContext[Any, Any]

_BYTES_PER_WEIGHT = 1_000
"""Of an answer that may be left in a cycle: a megabyte is as much as ten refusals."""


class Charging:
    """Charges a caller for what is computed in a block, whether or not it fails.

    Parameters
    ----------
    charges
        Are told of it.
    account
        Of the caller.
    """

    __slots__ = ("_account", "_began_us", "_charges")

    def __init__(self, charges: Charges, account: Account) -> None:
        self._charges, self._account = charges, account

    def __enter__(self) -> None:
        self._began_us = cpu_us()

    def __exit__(self, *_error: object) -> None:
        self._charges.carried(self._account, cpu_us() - self._began_us)


class Admission:
    """Refuses calls, and counts what is refused.

    Parameters
    ----------
    command_loop
        Knows the state of the server.
    """

    def __init__(self, command_loop: CommandLoop) -> None:
        self._command_loop = command_loop

    @property
    def counters(self) -> Counters:
        """Where refusals are counted."""
        return self._command_loop.coordinator.counters

    def require_serving(self) -> None:
        """Raise RefusalError unless commands are taken now."""
        require_serving(self._command_loop.state)

    def suspect_cancelled(self, size: int) -> None:
        """Note that a call was broken off, which leaves cycles, and how large its answer may be."""
        self._command_loop.gc_control.suspect(1 + size // _BYTES_PER_WEIGHT)

    def charging(self, account: Account) -> Charging:
        """Charge a caller for what is computed in a block: for reading what it asks, refused or not."""
        return Charging(self._command_loop.charges, account)

    def note(self, error: RefusalError) -> None:
        """Count a refusal, and let go of where it was raised, which may hold it in turn."""
        error.__traceback__ = None
        self.counters.rejected[error.reason] += 1

    def refuse(self, context: Context, error: RefusalError) -> None:
        """Let a call end with status, error and ErrorInfo of a refusal, when its handler returns.

        `context.abort` raises: the exception, its frames and the call are a cycle of 40 objects.
        """
        self.note(error)
        context.set_trailing_metadata(trailing_metadata(error))
        context.set_code(CODES[error.reason])
        context.set_details(str(error))
