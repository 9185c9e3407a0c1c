"""The first frames of a WebSocket: the token of its client, in a frame if no header has it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

from aiohttp import WSMessage, WSMsgType, web

from gateway.handshake import header_token
from identity.authenticator import Authenticator
from identity.principal import Principal
from identity.rules import Action, require_action
from nearcast.errors import Reason, RefusedError

_FIRST_FRAME_S = 10.0
"""How long a client may take from the handshake to its token, and to its first request."""

PINGS = (WSMsgType.PING, WSMsgType.PONG)
_PING_S = 0.1
"""Interval between two pings of a client without a token, beyond which they wait."""

_PONG_BYTES_MAX = 64 * 1024
"""A ping gets no pong while more waits to be written."""

_Frame = TypeVar("_Frame")


async def caller_of(
    request: web.Request,
    socket: web.WebSocketResponse,
    transport: asyncio.Transport,
    authenticator: Authenticator,
    action: Action,
) -> tuple[Principal, str | None]:
    """Return the caller, by the token in a header or in the first frame, and the token.

    Raises
    ------
    RefusedError
        If there is none, or its role may not perform the action.
    """
    token = header_token(request)
    if token is None and not authenticator.is_open:
        token = await first(_token_in(socket, transport))
    caller = authenticator.principal(token)
    require_action(caller, action)
    return caller, token


async def _token_in(socket: web.WebSocketResponse, transport: asyncio.Transport) -> str | None:
    """Return the text of the first frame; None if it has none. Pings before it wait for each other."""
    while (message := await socket.receive()).type in PINGS:
        await respond_to_ping(socket, transport, message)
        await asyncio.sleep(_PING_S)
    return str(message.data) if message.type is WSMsgType.TEXT else None


async def first(frame: Awaitable[_Frame]) -> _Frame:
    """Return the first frame.

    Raises
    ------
    RefusedError
        If it is not read in time. The frame may have arrived while this process was stopped: RECOVERING.
    """
    try:
        async with asyncio.timeout(_FIRST_FRAME_S):
            return await frame
    except TimeoutError:
        limit = f"read within {_FIRST_FRAME_S:g} s; try again"
        raise RefusedError(Reason.RECOVERING, "frame", "unread", limit) from None


async def respond_to_ping(
    socket: web.WebSocketResponse, transport: asyncio.Transport, ping: WSMessage
) -> None:
    """Respond to a ping, unless much waits to be written: pongs must not add up."""
    if ping.type is WSMsgType.PING and transport.get_write_buffer_size() <= _PONG_BYTES_MAX:
        with contextlib.suppress(ConnectionError, RuntimeError):  # it is closing
            await socket.pong(ping.data)
