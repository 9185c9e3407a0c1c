"""The first message of a call, with a time limit.

gRPC's own handlers of single requests wait for the request as long as the connection lasts, and never end
a call without one. So every method reads its first message here.

The time also passes while the process is stopped, or does not get the CPU. The request may have arrived
meanwhile, so the refusal is RECOVERING: nothing was processed, and the client may send the request again.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from nearcast.errors import Reason, RefusedError
from server.transport.admission import Context

WAIT_S = 10.0
"""Long enough for 32 MiB over a slow line, or for a user to choose a request."""

OPEN_MAX = 256
"""Unauthenticated calls that wait for their message. Honest ones take a moment: the oldest is ended."""


class FirstMessages:
    """Waits for first messages, with at most `OPEN_MAX` unauthenticated calls at once."""

    def __init__(self) -> None:
        self._open: dict[asyncio.Timeout, None] = {}

    async def read(self, context: Context, *, is_open: bool = False) -> Any:  # noqa: ANN401 - of any type
        """Return the message of a call, or the end of its requests.

        Parameters
        ----------
        context
            The context of the call.
        is_open
            Whether the method needs no token.

        Raises
        ------
        RefusedError
            If it does not come in time.
        """
        limit = asyncio.timeout(WAIT_S)
        try:
            async with limit:
                if is_open:
                    self._make_room(limit)
                return await context.read()
        except TimeoutError:
            raise unread() from None
        finally:
            self._open.pop(limit, None)

    async def read_one(self, context: Context, *, is_open: bool = False) -> Any:  # noqa: ANN401
        """Return the message of a call that requires one. Raises RefusedError also if it has none."""
        request = await self.read(context, is_open=is_open)
        if request is grpc.aio.EOF:
            raise absent()
        return request

    def _make_room(self, limit: asyncio.Timeout) -> None:
        if len(self._open) >= OPEN_MAX:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        self._open[limit] = None


def absent() -> RefusedError:
    """Return the refusal of a call whose client has ended its side without a message."""
    return RefusedError(Reason.INVALID_FIELD, "request", "absent", "there")


def unread() -> RefusedError:
    """Return the refusal of a call whose message was not read in time."""
    return RefusedError(
        Reason.RECOVERING, "request", "unread", f"read within {WAIT_S:g} s; send it again"
    )
