"""Unary calls: their errors and their retries."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc

from nearcast.errors import NearcastError, Reason, RefusedError, UnavailableError
from nearcast.transport.backoff import backoff_s
from nearcast.transport.cancellation import is_cancelled
from nearcast.transport.connection_hints import connection_hint
from nearcast.v1 import errors_pb2
from nearcast.wire.errors import refusal_from

_ERROR_METADATA = "nearcast-error-bin"

PATIENCE_S = 60.0
"""Time to wait for a server that reports that it is stopping or starting."""

_COMING_BACK = (Reason.DRAINING, Reason.RECOVERING)

_Answer = TypeVar("_Answer")


class UnsentError(UnavailableError):
    """The server cannot be reached, and has not received the request. Apps see `UnavailableError`."""


def wire_error(error: grpc.aio.AioRpcError) -> errors_pb2.Error | None:
    """Return the server's refusal of a call; None if the call failed otherwise."""
    for key, value in error.trailing_metadata() or ():
        if key == _ERROR_METADATA and isinstance(value, bytes):
            return errors_pb2.Error.FromString(value)
    return None


def named_server(error: RefusedError | grpc.aio.AioRpcError) -> str:
    """Return the address of the server to call instead, which the error of a call names; else empty."""
    refused = error if isinstance(error, RefusedError) else wire_error(error)
    return "" if refused is None else refused.server


def refusal(error: grpc.aio.AioRpcError, *, is_encrypted: bool) -> RefusedError | UnavailableError:
    """Convert the error of a failed call."""
    refused = wire_error(error)
    if refused is not None:
        return refusal_from(refused)
    message = f"{error.code().name}: {error.details()}"
    if error.code() is not grpc.StatusCode.UNAVAILABLE:
        return UnavailableError(message)
    hint = connection_hint(error.details() or "", is_encrypted=is_encrypted)
    return UnavailableError(f"the server cannot be reached: {message}", hint)


def as_apps_see_it(error: NearcastError) -> NearcastError:
    """Convert an error to a public class."""
    if isinstance(error, UnavailableError) and type(error) is not UnavailableError:
        return UnavailableError(error.message, error.hint)
    return error


def wait_before_retry_s(error: NearcastError, *, can_renew_token: bool) -> float | None:
    """Return the seconds after which a request that had no effect may be retried; None for never."""
    if not isinstance(error, RefusedError):
        return None
    if error.reason is Reason.RATE_LIMITED and error.retry_after_ms > 0:
        return error.retry_after_ms / 1000.0
    return 0.0 if error.reason is Reason.TOKEN_EXPIRED and can_renew_token else None


def is_coming_back(error: NearcastError) -> bool:
    """Return whether the server did not process the request and invites a retry."""
    return isinstance(error, RefusedError) and error.reason in _COMING_BACK


async def await_response(call: Awaitable[_Answer], *, is_encrypted: bool) -> _Answer:
    """Return the response of a call.

    Raises
    ------
    RefusedError
        If the server refuses the call.
    UnavailableError
        If the server cannot be reached, or the connection is lost.
    """
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise refusal(error, is_encrypted=is_encrypted) from None
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise UnavailableError("the connection was closed before the response") from None


async def patiently(
    call: Callable[[bool], Awaitable[_Answer]],
    tries: int = 1,
    *,
    is_returning: bool = False,
    can_renew_token: bool = False,
    is_encrypted: bool = False,
    waits_for_server: bool = True,
) -> _Answer:
    """Make a call. Retry while the server is stopping or starting, and at the time that it gives.

    Parameters
    ----------
    call
        Makes the call. Its argument is whether to wait for a connection, which is true once the server
        has reported that it will be back.
    tries
        Largest number of attempts if the outcome is unknown because the connection broke.
    is_returning
        Whether the server is expected to be reachable or to come back, so that even the first attempt
        waits for it.
    can_renew_token
        Whether the next call has another token.
    is_encrypted
        Whether the connection is encrypted, for hints.
    waits_for_server
        Whether to wait for a server that is stopping or starting.

    Raises
    ------
    RefusedError
        If the server refuses the call permanently.
    UnavailableError
        If the server cannot be reached, or was not back in time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    jitter = random.Random()
    failure: NearcastError | None = None
    for attempt in itertools.count(1):
        try:
            async with asyncio.timeout_at(deadline if is_returning else None):
                return await await_response(call(is_returning), is_encrypted=is_encrypted)
        except TimeoutError:
            raise _not_back(failure) from failure
        except NearcastError as error:
            failure = error
        wait_s = wait_before_retry_s(failure, can_renew_token=can_renew_token)
        if wait_s is not None:
            if loop.time() + wait_s > deadline:
                raise failure from None
            await asyncio.sleep(wait_s)
        elif waits_for_server and is_coming_back(failure):
            is_returning = True
        elif is_returning and isinstance(failure, UnsentError):
            pass
        elif isinstance(failure, UnavailableError) and tries > 1:
            tries -= 1
        else:
            raise as_apps_see_it(failure) from None
        await asyncio.sleep(backoff_s(attempt, jitter))
    raise AssertionError("unreachable")


def _not_back(failure: NearcastError | None) -> UnavailableError:
    """Return the error of a request that was repeated until the time was over, after the last failure."""
    if failure is not None and is_coming_back(failure):
        reported = f"the server has not processed the request within {PATIENCE_S:g} s"
        return UnavailableError(f"{reported}; it last reported: {failure}", failure.hint)
    message = f"the server could not be reached again within {PATIENCE_S:g} s"
    return UnavailableError(
        message, "the request may have been carried out; objects with keys can be repeated"
    )
