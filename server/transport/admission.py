"""Admission: refuses calls that the server may not process now, and counts refusals."""

from __future__ import annotations

from typing import Any

import grpc

from identity.quotas import Account
from nearcast.errors import RefusedError
from server.counters import Counters
from server.measures import cpu_us
from server.runtime.charges import Charges
from server.runtime.command_loop import CommandLoop
from server.runtime.lifecycle import require_serving
from server.transport.status import CODES, trailing_metadata

Context = grpc.aio.ServicerContext[Any, Any]

SMALL_BYTES = 1_024
"""A message up to this size is parsed and converted within microseconds, and its caller is charged only
for its command."""

_BYTES_PER_WEIGHT = 1_000
"""Bytes of a response that a cycle may keep, per unit of weight: a megabyte equals ten refusals."""

_MESSAGE_US = 100.0
"""Time to read a message: 90 us on a busy machine if it is empty. The costs of commands include it."""


class Charging:
    """Charges a caller for the time of a block, whether or not it fails.

    Parameters
    ----------
    charges
        Receives the charge.
    account
        The account of the caller.
    """

    __slots__ = ("_account", "_began_us", "_charges")

    def __init__(self, charges: Charges, account: Account) -> None:
        self._charges, self._account = charges, account

    def __enter__(self) -> None:
        self._began_us = cpu_us()

    def __exit__(self, *_error: object) -> None:
        self._charges.carried(self._account, cpu_us() - self._began_us)


class Admission:
    """Refuses calls, and counts refusals.

    Parameters
    ----------
    command_loop
        Has the state of the server.
    """

    def __init__(self, command_loop: CommandLoop) -> None:
        self._command_loop = command_loop

    @property
    def counters(self) -> Counters:
        """The counters of refusals."""
        return self._command_loop.coordinator.counters

    def require_serving(self) -> None:
        """Raise RefusedError unless commands are accepted now."""
        require_serving(self._command_loop.state)

    def suspect_cancelled(self, size: int) -> None:
        """Record a cancelled call, which leaves cycles, and the size of its response, which they keep."""
        self._command_loop.gc_control.suspect(1 + size // _BYTES_PER_WEIGHT)

    def charging(self, account: Account) -> Charging:
        """Charge a caller for the time of a block: for reading its request, refused or not."""
        return Charging(self._command_loop.charges, account)

    def charge_message(self, account: Account) -> None:
        """Charge a caller for a message without a command: an empty one, or one that is not parsed."""
        self._command_loop.charges.carried(account, _MESSAGE_US)

    def note(self, error: RefusedError) -> None:
        """Count a refusal, and clear its traceback, whose frames may refer to it."""
        error.__traceback__ = None
        self.counters.rejected[error.reason] += 1

    def refuse(self, context: Context, error: RefusedError) -> None:
        """Set the status, error and ErrorInfo of a refusal, with which the call ends after its handler.

        `context.abort` raises: the exception, its frames and the call are a cycle of 40 objects.
        """
        self.note(error)
        context.set_trailing_metadata(trailing_metadata(error))
        context.set_code(CODES[error.reason])
        context.set_details(str(error))
